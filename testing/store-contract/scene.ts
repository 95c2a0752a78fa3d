import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type HcpErrorCode, isHcpError } from '../../shared/errors.ts';
import type { Row, Store, Write } from '../../shared/store/store.ts';
import type { Tables } from '../../shared/store/tables.ts';
import type { ContractCase } from '../contract.ts';
import type { StoreHarness } from './harness.ts';

export const TABLES = {
  things: {
    columns: {
      owner: 'text',
      id: 'text',
      version: 'integer',
      rank: 'integer?',
      label: 'text?',
      badge: 'text?',
      body: 'text?',
    },
    key: ['owner', 'id'],
    indexes: {
      by_rank: { columns: ['owner', 'rank'] },
      by_label: { columns: ['owner', 'label', 'rank'] },
      by_version: { columns: ['owner', 'version'] },
      by_badge: { columns: ['owner', 'badge'], unique: true },
      /** Holds the whole key, so that nothing is left to break ties. */
      by_place: { columns: ['owner', 'rank', 'id'] },
    },
  },
  entries: {
    columns: { log: 'text', position: 'integer', body: 'text' },
    key: ['log', 'position'],
    indexes: {},
  },
} as const satisfies Tables;

/** One case's place in the data: a name that no other case uses, and stores that are closed afterwards. */
export interface Scene {
  readonly harness: StoreHarness;
  readonly store: Store;
  /** The `owner` of this case's things, and the name of its log. */
  readonly own: string;
  /** One more store on the same data. */
  open(): Promise<Store>;
}

export type Proof = (scene: Scene) => Promise<void>;

/** Makes cases of sentences and proofs. */
export function cases(
  harness: StoreHarness,
  proofs: Readonly<Record<string, Proof>>,
  timeLimitMs = 20_000,
): ContractCase[] {
  return Object.entries(proofs).map(([name, proof]) => ({
    name,
    verifies: [],
    timeLimitMs,
    run: () => inScene(harness, proof),
  }));
}

async function inScene(harness: StoreHarness, proof: Proof): Promise<void> {
  const stores: Store[] = [];
  const open = async () => {
    const store = await harness.open(TABLES);
    stores.push(store);
    return store;
  };
  try {
    await proof({ harness, own: `${harness.adapter}-${randomUUID()}`, store: await open(), open });
  } finally {
    for (const store of stores) await store.close();
  }
}

export function thing(own: string, id: string, columns: Row = {}): Row {
  return { owner: own, id, version: 1, rank: null, label: null, badge: null, body: null, ...columns };
}

export function insertThing(own: string, id: string, columns: Row = {}): Write {
  return { insert: 'things', row: thing(own, id, columns) };
}

export function entry(log: string, position: number, body = `body ${position}`): Row {
  return { log, position, body };
}

export async function commitAll(store: Store, writes: readonly Write[]): Promise<void> {
  assert.equal(await store.commit(writes), 'committed');
}

export async function idsOf(rows: Promise<readonly Row[]>): Promise<unknown[]> {
  return (await rows).map((row) => row.id);
}

export async function positionsOf(store: Store, log: string): Promise<unknown[]> {
  return (await store.scan('entries', 'key', { where: [log], limit: 1_000 })).map((row) => row.position);
}

export async function rejectsWith(code: HcpErrorCode, action: Promise<unknown>): Promise<void> {
  await assert.rejects(action, (error) => isHcpError(error, code));
}
