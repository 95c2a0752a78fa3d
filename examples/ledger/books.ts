/**
 * The program's own rows, next to those of the SDK in the same database: one for each movement, and a balance for each
 * account. They are written in the transaction that moves the cursor.
 */
import { DatabaseSync } from 'node:sqlite';
import type { Store, StoreTransaction } from 'hcp-sdk';
import type { MongoDbStore } from 'hcp-sdk/store/mongodb';
import type { ClientSession } from 'mongodb';
import type { Movement } from './movements.ts';

/** A movement, and the event that told it. */
export interface Entry extends Movement {
  readonly session_id: string;
  readonly sequence: number;
}

export interface Books extends AsyncDisposable {
  /** Opens new ones: what an earlier run left in this database is gone. */
  clear(): Promise<void>;
  /** To be given to the caller: the books are in the same database. */
  readonly store: Store;
  /** Not idempotent, on purpose: a movement that is entered twice shows in the balances. */
  enter(entry: Entry, tx: StoreTransaction): Promise<void>;
  /** By session, then by sequence. */
  entries(): Promise<Entry[]>;
  balances(): Promise<Record<string, number>>;
}

export async function openBooks(url: string): Promise<Books> {
  if (url.startsWith('sqlite:')) return openSqliteBooks(url.slice('sqlite:'.length));
  const { connectMongoDb } = await import('hcp-sdk/store/mongodb');
  return openMongoDbBooks(await connectMongoDb({ url }));
}

async function openSqliteBooks(path: string): Promise<Books> {
  const { openSqliteStore } = await import('hcp-sdk/store/sqlite');
  const store = await openSqliteStore({ path });
  const reader = new DatabaseSync(path, { timeout: 5000 });
  return {
    store,
    async clear() {
      reader.exec(`
        DROP TABLE IF EXISTS ledger_movements;
        CREATE TABLE ledger_movements (session_id TEXT, sequence INTEGER, id TEXT, "from" TEXT, "to" TEXT, cents INTEGER);
        DROP TABLE IF EXISTS ledger_accounts;
        CREATE TABLE ledger_accounts (name TEXT PRIMARY KEY, cents INTEGER NOT NULL);
      `);
    },
    async enter({ session_id, sequence, id, from, to, cents }, tx) {
      const database = tx.native as DatabaseSync; // of a SQLite store
      database
        .prepare('INSERT INTO ledger_movements VALUES (?, ?, ?, ?, ?, ?)')
        .run(session_id, sequence, id, from, to, cents);
      const add = database.prepare(
        'INSERT INTO ledger_accounts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET cents = cents + excluded.cents',
      );
      add.run(from, -cents);
      add.run(to, cents);
    },
    async entries() {
      const rows = reader.prepare('SELECT * FROM ledger_movements ORDER BY session_id, sequence').all();
      return rows.map((row) => ({ ...row }) as unknown as Entry); // as `enter` wrote them
    },
    async balances() {
      const rows = reader.prepare('SELECT name, cents FROM ledger_accounts').all();
      return Object.fromEntries(rows.map(({ name, cents }) => [String(name), Number(cents)]));
    },
    async [Symbol.asyncDispose]() {
      reader.close();
      await store.close();
    },
  };
}

function openMongoDbBooks(store: MongoDbStore): Books {
  // A session of the driver works with collections of its own client only.
  const movements = store.client.db().collection<Entry>('ledger_movements');
  // The name is the key: two transactions that open the same account at once must not make two of it.
  const accounts = store.client.db().collection<{ _id: string; cents: number }>('ledger_accounts');
  return {
    store,
    async clear() {
      await Promise.all([movements.deleteMany(), accounts.deleteMany()]);
    },
    async enter(entry, tx) {
      const session = tx.native as ClientSession; // of a MongoDB store
      await movements.insertOne({ ...entry }, { session });
      await accounts.updateOne({ _id: entry.from }, { $inc: { cents: -entry.cents } }, { session, upsert: true });
      await accounts.updateOne({ _id: entry.to }, { $inc: { cents: entry.cents } }, { session, upsert: true });
    },
    entries() {
      const bySession = { session_id: 1, sequence: 1 } as const;
      return movements.find({}, { projection: { _id: 0 }, sort: bySession }).toArray();
    },
    async balances() {
      return Object.fromEntries((await accounts.find().toArray()).map(({ _id, cents }) => [_id, cents]));
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}
