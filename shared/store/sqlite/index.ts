export type { Synchronous } from './database.ts';
export { openSqliteStore, type SqliteStoreOptions } from './sqlite-store.ts';
