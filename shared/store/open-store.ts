import type { Clock } from '../clock.ts';
import type { Store } from './store.ts';
import type { Tables } from './tables.ts';

export interface OpenStoreOptions {
  /** @default hcpTables */
  readonly tables?: Tables;
  /** Not for MongoDB, which has a clock of its own. @default systemClock */
  readonly clock?: Clock;
  /** Allows a MongoDB server on another machine without TLS. @default false */
  readonly allowInsecure?: boolean;
}

/**
 * Opens the store a URL names: `memory:`, `sqlite:./hcp.db`, `mongodb://…` or `mongodb+srv://…`. The engine's driver is
 * loaded only then.
 */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<Store> {
  const { allowInsecure, ...common } = options;
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/s.exec(url) ?? [];
  switch (scheme) {
    case 'memory': {
      const { createMemoryStore } = await import('./memory/index.ts');
      return createMemoryStore(common);
    }
    case 'sqlite': {
      if (rest === '') throw new TypeError('A sqlite: URL names a file, as in sqlite:./hcp.db');
      const { openSqliteStore } = await import('./sqlite/index.ts');
      return openSqliteStore({ ...common, path: rest });
    }
    case 'mongodb':
    case 'mongodb+srv': {
      const { connectMongoDb } = await import('./mongodb/index.ts');
      const { tables } = common;
      return connectMongoDb({
        url,
        ...(tables !== undefined && { tables }),
        ...(allowInsecure !== undefined && { allowInsecure }),
      });
    }
    default:
      // The URL itself stays out of the message: it may hold a password.
      throw new TypeError('A store URL is memory:, sqlite:<file>, mongodb://… or mongodb+srv://…');
  }
}
