import { type Clock, systemClock } from '../../clock.ts';
import { createStore } from '../create-store.ts';
import type { CheckedWrite, Engine, EngineTransaction } from '../engine.ts';
import { layoutsOf } from '../layout.ts';
import { Mutex } from '../mutex.ts';
import type { Conflict, Store } from '../store.ts';
import { hcpTables, type Tables } from '../tables.ts';
import { apply, get, type Snapshot, scan, withTables } from './tables.ts';

/** The rows of memory stores. Give one to several stores of a process and they share it, as two programs share a database. */
export class MemoryData {
  /** @internal */
  snapshot: Snapshot = new Map();
  /** @internal Writers wait for a running transaction; readers see what was there before it. */
  readonly writers = new Mutex();
}

export interface MemoryStoreOptions {
  /** @default hcpTables */
  readonly tables?: Tables;
  /** What `now()` tells. @default systemClock */
  readonly clock?: Clock;
  /** @default data of its own, gone with the store */
  readonly data?: MemoryData;
}

/** A store in this process's memory: all the promises but durability. */
export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const { tables = hcpTables, clock = systemClock, data = new MemoryData() } = options;
  const layouts = layoutsOf(tables);
  data.snapshot = withTables(data.snapshot, layouts.values());
  return createStore(createEngine(data, clock), tables, layouts);
}

function createEngine(data: MemoryData, clock: Clock): Engine {
  return {
    get: async (table, key) => get(data.snapshot, table, key),
    scan: async (stretch) => scan(data.snapshot, stretch),
    commit: (writes) =>
      data.writers.run(() => {
        const result = applyAll(data.snapshot, writes);
        if ('conflict' in result) return result.conflict;
        data.snapshot = result.snapshot;
        return undefined;
      }),
    append: (table, rows) =>
      data.writers.run(() => {
        for (const [write, row] of rows.entries()) {
          const key = table.key.map((column) => row[column.at] as string | number); // key columns are never null
          const after = apply(data.snapshot, { kind: 'insert', table, key, row });
          if (typeof after === 'string') return { write, reason: after };
          data.snapshot = after;
        }
        return undefined;
      }),
    transaction: (work) =>
      data.writers.run(async () => {
        const tx = new MemoryTransaction(data.snapshot);
        const result = await work(tx);
        data.snapshot = tx.snapshot;
        return result;
      }),
    now: async () => clock.now(),
    close: async () => {},
    translate: (error) => error,
  };
}

class MemoryTransaction implements EngineTransaction {
  readonly native = undefined;
  snapshot: Snapshot;

  constructor(snapshot: Snapshot) {
    this.snapshot = snapshot;
  }

  get: EngineTransaction['get'] = async (table, key) => get(this.snapshot, table, key);
  scan: EngineTransaction['scan'] = async (stretch) => scan(this.snapshot, stretch);
  write: EngineTransaction['write'] = async (writes) => {
    const result = applyAll(this.snapshot, writes);
    if ('conflict' in result) return result.conflict;
    this.snapshot = result.snapshot;
    return undefined;
  };
}

function applyAll(
  snapshot: Snapshot,
  writes: readonly CheckedWrite[],
): { readonly snapshot: Snapshot } | { readonly conflict: Conflict } {
  let result = snapshot;
  for (const [write, checked] of writes.entries()) {
    const after = apply(result, checked);
    if (typeof after === 'string') return { conflict: { write, reason: after } };
    result = after;
  }
  return { snapshot: result };
}
