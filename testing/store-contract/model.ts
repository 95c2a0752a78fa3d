import assert from 'node:assert/strict';
import type { Condition, Conflict, Range, Row, Store, Value, Write } from '../../shared/store/store.ts';
import type { ContractCase } from '../contract.ts';
import type { StoreHarness } from './harness.ts';
import { cases, type Scene, TABLES, thing } from './scene.ts';

const STEPS = 150;
const IDS = ['', 'a', 'b.c', '$d', '\uffff', '😀'];
const LABELS = [null, '', 'x', '\ue000', '😀'];
const INDEXES = ['by_rank', 'by_label', 'by_version', 'by_badge', 'by_place'] as const;

/** Random commits and scans, each compared with a model that is too simple to be wrong. */
export function modelCases(harness: StoreHarness): ContractCase[] {
  return cases(harness, { 'agrees with a plain model on random commits and scans': compare }, 120_000);
}

async function compare({ store, own }: Scene): Promise<void> {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = seededRandom(seed);
  let model: Model = new Map();
  for (let step = 0; step < STEPS; step++) {
    const writes = Array.from({ length: 1 + random(4) }, () => randomWrite(own, random));
    const told = `seed ${seed}, step ${step}: ${JSON.stringify(writes)}`;
    const expected = commit(model, writes);
    assert.deepEqual(await store.commit(writes), expected instanceof Map ? 'committed' : expected, told);
    if (expected instanceof Map) model = expected;
    await compareScan(store, own, model, random, told);
  }
}

type Model = ReadonlyMap<string, Row>;
type Random = (below: number) => number;

function commit(model: Model, writes: readonly Write[]): Model | Conflict {
  const rows = new Map(model);
  for (const [write, each] of writes.entries()) {
    const reason = apply(rows, each);
    if (reason !== undefined) return { write, reason };
  }
  return rows;
}

function apply(rows: Map<string, Row>, write: Write): Conflict['reason'] | undefined {
  const id = String('row' in write ? write.row.id : write.key[1]);
  const old = rows.get(id);
  if ('insert' in write && old !== undefined) return 'exists';
  if ('check' in write && write.if === 'absent') return old === undefined ? undefined : 'exists';
  const condition = 'if' in write && write.if !== 'absent' ? write.if : undefined;
  const needsRow = condition !== undefined || 'patch' in write;
  if (needsRow && old === undefined) return 'missing';
  if (old !== undefined && condition !== undefined && !matches(old, condition)) return 'mismatch';
  if ('delete' in write) rows.delete(id);
  const next =
    'row' in write ? write.row : 'patch' in write && old !== undefined ? { ...old, ...write.set } : undefined;
  if (next === undefined) return undefined;
  const taken = [...rows.values()].some((row) => row.id !== id && row.badge !== null && row.badge === next.badge);
  if (taken) return 'exists';
  rows.set(id, next);
  return undefined;
}

function matches(row: Row, condition: Condition): boolean {
  return Object.entries(condition).every(([column, wanted]) => {
    const value = row[column] ?? null;
    if (typeof wanted !== 'object' || wanted === null) return value === wanted;
    return typeof value === 'number' && value < wanted.below;
  });
}

async function compareScan(store: Store, own: string, model: Model, random: Random, told: string): Promise<void> {
  const index = INDEXES[random(INDEXES.length)] ?? 'by_rank';
  const columns: readonly string[] = [...TABLES.things.indexes[index].columns, 'id'];
  const sorted = [...model.values()]
    .filter((row) => columns.every((column) => row[column] !== null))
    .toSorted((a, b) => compareRows(columns, a, b));
  const range: Range = { where: [own], order: random(2) === 0 ? 'ascending' : 'descending', limit: 1 + random(4) };
  const inOrder = range.order === 'ascending' ? sorted : sorted.toReversed();
  const from = random(inOrder.length + 1);
  const after = inOrder[from - 1];
  const found = await store.scan('things', index, after === undefined ? range : { ...range, after });
  assert.deepEqual(found, inOrder.slice(from, from + (range.limit ?? 0)), `${told} then ${index}`);
}

function compareRows(columns: readonly string[], a: Row, b: Row): number {
  for (const column of columns) {
    const [x, y] = [a[column], b[column]];
    const difference =
      typeof x === 'number' && typeof y === 'number'
        ? x - y
        : Buffer.compare(Buffer.from(String(x)), Buffer.from(String(y)));
    if (difference !== 0) return difference;
  }
  return 0;
}

function randomWrite(own: string, random: Random): Write {
  const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T; // never empty
  const key = [own, pick(IDS)];
  const columns: Record<string, Value> = {
    version: random(3),
    rank: pick([null, -1, 0, 1, 2 ** 40]),
    label: pick(LABELS),
    badge: pick([null, null, null, 'gold', 'iron']),
  };
  const row = thing(own, String(key[1]), columns);
  const condition: Condition = pick([{ version: random(3) }, { label: pick(LABELS) }, { rank: { below: 1 } }, {}]);
  return pick<Write>([
    { insert: 'things', row },
    { put: 'things', row },
    { put: 'things', row, if: condition },
    {
      patch: 'things',
      key,
      set: pick<Row>([{ rank: columns.rank ?? null }, { badge: columns.badge ?? null, version: 1 }]),
    },
    { patch: 'things', key, set: columns, if: condition },
    { delete: 'things', key },
    { delete: 'things', key, if: condition },
    { check: 'things', key, if: condition },
    { check: 'things', key, if: 'absent' },
  ]);
}

/** Mulberry32: small, and the same everywhere. */
function seededRandom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
