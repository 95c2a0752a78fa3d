export { createMemoryStore, MemoryData, type MemoryStoreOptions } from './memory-store.ts';
