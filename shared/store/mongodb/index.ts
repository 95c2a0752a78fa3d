export { connectMongoDb, type MongoDbStore, type MongoDbStoreOptions } from './mongodb-store.ts';
