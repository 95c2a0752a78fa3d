import {
  type ClientSession,
  type Db,
  type MongoClient,
  type MongoClientOptions,
  ReadConcern,
  ReadPreference,
  type TransactionOptions,
} from 'mongodb';
import { HcpError } from '../../errors.ts';
import { createStore } from '../create-store.ts';
import type { CheckedWrite, Engine, EngineTransaction } from '../engine.ts';
import { layoutsOf, type TableLayout } from '../layout.ts';
import type { Conflict, Store } from '../store.ts';
import { hcpTables, type Tables } from '../tables.ts';
import { connect, createClient } from './connection.ts';
import { filterOf, findOf, type RowDocument, toDocument, toValues } from './documents.ts';
import { Doubt } from './doubt.ts';
import { isDuplicate, isTransient, leavesDoubt, SomeConflict, toStoreError } from './errors.ts';
import { prepareLayout, writeBarrier } from './layout.ts';
import { OrphanedTransactions } from './orphans.ts';
import { applyGroups, applyOne, type CollectionOf, group } from './writes.ts';

export interface MongoDbStoreOptions {
  /** `mongodb://…` or `mongodb+srv://…`, of a replica set or a mongos. */
  readonly url: string;
  /** @default the database of the URL, which is `test` if it names none */
  readonly database?: string;
  /** @default hcpTables */
  readonly tables?: Tables;
  /** The driver's options (TLS files, pool sizes …). What the store's promises rest on is set by the store. */
  readonly options?: MongoClientOptions;
  /** Allows a server on another machine without TLS. @default false */
  readonly allowInsecure?: boolean;
}

/** A store in MongoDB that also shows its client: a session works with collections of its own client only. */
export interface MongoDbStore extends Store {
  /** Write with its collections and `transaction.native` as `session`. The store closes it. */
  readonly client: MongoClient;
}

/** Durable on a majority, and read from the primary what a majority has. */
const DURABLE = {
  readConcern: new ReadConcern('majority'),
  writeConcern: { w: 'majority', journal: true },
  readPreference: ReadPreference.primary,
} satisfies TransactionOptions;
const SNAPSHOT = { ...DURABLE, readConcern: new ReadConcern('snapshot') } satisfies TransactionOptions;

/**
 * A store in MongoDB, shared by any number of machines. `transaction.native` is the driver's `ClientSession`. Reads in
 * a transaction are of one moment; a row that must not change until the commit is to be written or checked.
 * Rejects with `store_unsupported` when the server is not a replica set or was laid out by a newer version, and with
 * `store_unavailable` when it is not there.
 */
export async function connectMongoDb(options: MongoDbStoreOptions): Promise<MongoDbStore> {
  const { url, database, tables = hcpTables, options: driver = {}, allowInsecure = false } = options;
  const layouts = layoutsOf(tables);
  const client = createClient({ url, options: driver, allowInsecure });
  try {
    await connect(client);
    const db = client.db(database, { ...DURABLE, promoteValues: true, raw: false });
    await prepareLayout(db, layouts.values());
    return Object.assign(createStore(createEngine(client, db), tables, layouts), { client });
  } catch (error) {
    await client.close();
    throw error;
  }
}

function createEngine(client: MongoClient, db: Db): Engine {
  const collectionOf: CollectionOf = (table) => db.collection<RowDocument>(`hcp_${table.name}`);
  const doubt = new Doubt(() => writeBarrier(db));
  const orphans = new OrphanedTransactions(client);

  const read = (session?: ClientSession): Pick<Engine, 'get' | 'scan'> => ({
    async get(table, key) {
      if (session === undefined) await doubt.settle();
      const document = await collectionOf(table).findOne(filterOf(table, key), session && { session });
      return document === null ? undefined : toValues(table, document);
    },
    async scan(stretch) {
      if (session === undefined) await doubt.settle();
      const [filter, options] = findOf(stretch);
      const cursor = collectionOf(stretch.table).find(
        filter,
        session === undefined ? options : { ...options, session },
      );
      return (await cursor.toArray()).map((document) => toValues(stretch.table, document));
    },
  });

  /** One by one when `carefully`; else in few commands, and a conflict among them calls for a careful run. */
  function begin(session: ClientSession, carefully: boolean): EngineTransaction {
    return {
      ...read(session),
      native: session,
      async write(writes) {
        const groups = carefully || writes.length === 1 ? undefined : group(writes);
        if (groups === undefined) return applyInOrder(session, writes);
        if (await applyGroups(collectionOf, session, groups)) return undefined;
        throw new SomeConflict();
      },
    };
  }

  async function applyInOrder(session: ClientSession, writes: readonly CheckedWrite[]): Promise<Conflict | undefined> {
    for (const [write, checked] of writes.entries()) {
      const reason = await applyOne(collectionOf, session, checked);
      if (reason !== undefined) return { write, reason };
    }
    return undefined;
  }

  async function transaction<T>(work: (tx: EngineTransaction) => Promise<T>, carefully = false): Promise<T> {
    let committing = false;
    await doubt.settle();
    const session = client.startSession();
    try {
      return await session.withTransaction(async () => {
        committing = false;
        const result = await work(begin(session, carefully));
        committing = true;
        return result;
      }, SNAPSHOT);
    } catch (error) {
      if (error instanceof SomeConflict && !carefully) return await transaction(work, true);
      // The driver has repeated the commit; a transient error is one that is sure to have left nothing.
      if (committing && !isTransient(error)) throw doubt.raise(error);
      throw isTransient(error) ? toStoreError(error) : error;
    } finally {
      await session.endSession();
    }
  }

  async function commitTogether(writes: readonly CheckedWrite[]): Promise<Conflict | undefined> {
    try {
      await transaction(async (tx) => {
        const conflict = await tx.write(writes);
        if (conflict !== undefined) throw new KnownConflict(conflict);
      });
      return undefined;
    } catch (error) {
      if (error instanceof KnownConflict) return error.conflict;
      throw error;
    }
  }

  /** Runs writes that need no transaction. A session of its own tells whether anything was sent. */
  async function directly<T>(write: (session: ClientSession) => Promise<T>): Promise<T> {
    await doubt.settle();
    const session = client.startSession({ causalConsistency: false });
    const { txnNumber } = session.serverSession;
    try {
      return await write(session);
    } catch (error) {
      const sent = session.serverSession.txnNumber !== txnNumber;
      throw sent && leavesDoubt(error) ? doubt.raise(error) : error;
    } finally {
      await session.endSession();
    }
  }

  async function insertAll(
    session: ClientSession,
    table: TableLayout,
    documents: readonly RowDocument[],
  ): Promise<Conflict | undefined> {
    try {
      await collectionOf(table).insertMany(documents, { session, ordered: true });
      return undefined;
    } catch (error) {
      if (!isDuplicate(error) || leavesDoubt(error)) throw error;
      return { write: firstIndexIn(error), reason: 'exists' };
    }
  }

  return {
    ...read(),
    async commit(writes) {
      return orphans.clearWayFor(() =>
        writes.length === 1 ? directly((session) => applyInOrder(session, writes)) : commitTogether(writes),
      );
    },
    async append(table, rows) {
      const documents = rows.map((row) => toDocument(table, row));
      return orphans.clearWayFor(() => directly((session) => insertAll(session, table, documents)));
    },
    transaction: (work) => orphans.clearWayFor(() => transaction(work)),
    async now() {
      const { localTime } = await db.admin().command({ hello: 1 });
      return Number(localTime);
    },
    close: () => client.close(),
    translate: toStoreError,
  };
}

class KnownConflict extends Error {
  readonly conflict: Conflict;

  constructor(conflict: Conflict) {
    super('Rolled back');
    this.conflict = conflict;
  }
}

function firstIndexIn(error: object): number {
  const [first] = 'writeErrors' in error && Array.isArray(error.writeErrors) ? error.writeErrors : [];
  if (typeof first?.index === 'number') return first.index;
  throw new HcpError('store_unavailable', 'MongoDB did not say which row exists', { cause: error });
}
