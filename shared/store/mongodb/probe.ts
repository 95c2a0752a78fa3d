import { randomBytes } from 'node:crypto';
import type { Db, MongoClient } from 'mongodb';
import { layoutsOf } from '../layout.ts';
import { hcpTables } from '../tables.ts';
import { connect, createClient } from './connection.ts';
import { indexKeyOf } from './documents.ts';
import { toStoreError } from './errors.ts';

/** A majority that is there answers at once. */
const MAJORITY_PATIENCE_MS = 5_000;
const CLOCK_SAMPLES = 3;

/** What a MongoDB server says of itself, and what it let us do. */
export interface MongoDbFacts {
  readonly version: string;
  /** The replica set's name; `undefined` behind a mongos. */
  readonly setName: string | undefined;
  readonly database: string;
  /** How far the server's clock is ahead of ours, give or take half a round trip. */
  readonly clockAheadMs: number;
  /** `undefined` when it worked, else why it did not. */
  readonly majorityFault: string | undefined;
  readonly transactionFault: string | undefined;
  /** `new`: no store has been in this database. */
  readonly indexes: 'new' | { readonly missing: readonly string[]; readonly different: readonly string[] };
}

/**
 * Looks at the server of a URL. Rejects as the store would: `store_unavailable`, or `store_unsupported` when it is no
 * replica set; a URL that cannot work throws `TypeError`.
 */
export function probeMongoDb(url: string): Promise<MongoDbFacts> {
  return probeClient(createClient({ url, options: {}, allowInsecure: false }));
}

/** The same with a client of one's own, which is closed afterwards. */
export async function probeClient(client: MongoClient): Promise<MongoDbFacts> {
  try {
    await connect(client);
    return await look(client);
  } catch (error) {
    throw toStoreError(error);
  } finally {
    await client.close();
  }
}

async function look(client: MongoClient): Promise<MongoDbFacts> {
  const db = client.db();
  const { version } = await db.command({ buildInfo: 1 });
  const { setName } = await db.command({ hello: 1 });
  return {
    version: String(version),
    setName,
    database: db.databaseName,
    clockAheadMs: await clockAhead(db),
    ...(await tryWrites(client, db)),
    indexes: await compareIndexes(db),
  };
}

/** From the fastest of a few answers: the clock was read somewhere between question and answer. */
async function clockAhead(db: Db): Promise<number> {
  let best = { tookMs: Number.POSITIVE_INFINITY, aheadMs: 0 };
  for (let sample = 0; sample < CLOCK_SAMPLES; sample++) {
    const asked = Date.now();
    const { localTime } = await db.command({ hello: 1 });
    const answered = Date.now();
    const tookMs = answered - asked;
    if (tookMs < best.tookMs) best = { tookMs, aheadMs: Number(localTime) - (asked + answered) / 2 };
  }
  return Math.round(best.aheadMs);
}

/** Writes into a collection of its own, which is gone afterwards. */
async function tryWrites(
  client: MongoClient,
  db: Db,
): Promise<Pick<MongoDbFacts, 'majorityFault' | 'transactionFault'>> {
  const probe = db.collection(`hcp__doctor_${randomBytes(6).toString('hex')}`);
  const writeConcern = { w: 'majority', journal: true, wtimeoutMS: MAJORITY_PATIENCE_MS } as const;
  try {
    const majorityFault = await faultOf(() => probe.insertOne({ by: 'majority' }, { writeConcern }));
    const transactionFault = await faultOf(() =>
      client.withSession((session) =>
        session.withTransaction(() => probe.insertOne({ by: 'transaction' }, { session }), {
          readConcern: { level: 'snapshot' },
          writeConcern,
          maxCommitTimeMS: MAJORITY_PATIENCE_MS,
        }),
      ),
    );
    return { majorityFault, transactionFault };
  } finally {
    await probe.drop().catch(() => {}); // who may not drop could not make it
  }
}

async function faultOf(attempt: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await attempt();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function compareIndexes(db: Db): Promise<MongoDbFacts['indexes']> {
  const collections = new Set((await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name));
  if (!collections.has('hcp__layout')) return 'new';
  const missing: string[] = [];
  const different: string[] = [];
  for (const { name, indexes } of layoutsOf(hcpTables).values()) {
    const collection = `hcp_${name}`;
    const found = collections.has(collection) ? await db.collection(collection).indexes() : [];
    for (const index of indexes) {
      const other = found.find((candidate) => candidate.name === index.name);
      const isSame =
        JSON.stringify(other?.key) === JSON.stringify(indexKeyOf(index)) && (other?.unique ?? false) === index.unique;
      if (other === undefined) missing.push(`${collection}.${index.name}`);
      else if (!isSame) different.push(`${collection}.${index.name}`);
    }
  }
  return { missing, different };
}
