import { HcpError } from '../errors.ts';
import { readKey, readRange, readRow, readWrite, refuseTooLarge, tableOf, toRow } from './checks.ts';
import type { CheckedWrite, Engine, EngineReader, EngineTransaction } from './engine.ts';
import type { TableLayout } from './layout.ts';
import { Mutex } from './mutex.ts';
import type { Conflict, Store, StoreReader, StoreTransaction, Write } from './store.ts';
import type { Tables } from './tables.ts';

type Layouts = ReadonlyMap<string, TableLayout>;

/**
 * From this many characters on, a patch is followed by a look at the row it made. Smaller ones cannot carry a row from
 * the limit of 15 MiB to the 16 MiB at which MongoDB alone would refuse it.
 */
const LARGE_PATCH = 16 * 1024;

/** Makes a {@link Store} of an engine: every rule that all engines share is here and in `checks.ts`. */
export function createStore(engine: Engine, tables: Tables, layouts: Layouts): Store {
  let running = 0;
  let whenIdle: (() => void) | undefined;
  let closed: Promise<void> | undefined;

  async function whileOpen<T>(task: () => Promise<T>): Promise<T> {
    if (closed !== undefined) throw new HcpError('store_closed', 'The store is closed');
    running++;
    try {
      return await task();
    } finally {
      running--;
      if (running === 0) whenIdle?.();
    }
  }

  function whileOpenTranslated<T>(task: () => Promise<T>): Promise<T> {
    return whileOpen(() => translated(task));
  }

  async function translated<T>(task: () => Promise<T>): Promise<T> {
    try {
      return await task();
    } catch (error) {
      throw engine.translate(error);
    }
  }

  async function closeEngine(): Promise<void> {
    if (running > 0) {
      await new Promise<void>((resolve) => {
        whenIdle = resolve;
      });
    }
    await engine.close();
  }

  const store: Store = {
    tables,
    ...createReader(engine, layouts, whileOpenTranslated),
    async commit(writes) {
      const checked = writes.map((write) => readWrite(layouts, write));
      return (await whileOpenTranslated(() => commit(checked))) ?? 'committed';
    },
    async append(tableName, rows) {
      const table = tableOf(layouts, tableName);
      const values = rows.map((row) => readRow(table, row));
      const appended = async () => (values.length === 0 ? undefined : engine.append(table, values));
      return (await whileOpenTranslated(appended)) ?? 'appended';
    },
    transaction: (work) => whileOpen(() => transact(work)),
    now: () => whileOpenTranslated(() => engine.now()),
    close: () => {
      closed ??= translated(closeEngine);
      return closed;
    },
    [Symbol.asyncDispose]: () => store.close(),
  };

  async function commit(writes: readonly CheckedWrite[]): Promise<Conflict | undefined> {
    if (writes.length === 0) return undefined;
    if (!writes.some(isLargePatch)) return engine.commit(writes);
    try {
      return await engine.transaction(async (tx) => {
        const conflict = await writeMeasured(tx, writes);
        if (conflict !== undefined) throw new RolledBack(conflict);
        return undefined;
      });
    } catch (error) {
      if (error instanceof RolledBack) return error.conflict;
      throw error;
    }
  }

  async function transact<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T> {
    let thrown: { readonly error: unknown } | undefined;
    try {
      return await engine.transaction(async (engineTx) => {
        thrown = undefined;
        const tx = new CheckedTransaction(engineTx, layouts, engine.translate);
        const outcome = await settle(() => work(tx));
        if ('error' in outcome) thrown = outcome;
        await tx.end(thrown !== undefined);
        if ('error' in outcome) throw outcome.error;
        return outcome.value;
      });
    } catch (error) {
      if (thrown !== undefined && thrown.error === error) throw error;
      throw engine.translate(error);
    }
  }

  return store;
}

function createReader(
  engine: EngineReader,
  layouts: Layouts,
  run: <T>(task: () => Promise<T>) => Promise<T>,
): StoreReader {
  return {
    async get(tableName, key) {
      const table = tableOf(layouts, tableName);
      const checked = readKey(table, key);
      const values = await run(() => engine.get(table, checked));
      return values && toRow(table, values);
    },
    async scan(tableName, index, range = {}) {
      const table = tableOf(layouts, tableName);
      const stretch = readRange(table, index, range);
      const rows = await run(async () => (stretch === undefined ? [] : engine.scan(stretch)));
      return rows.map((values) => toRow(table, values));
    },
  };
}

async function settle<T>(task: () => Promise<T>): Promise<{ readonly value: T } | { readonly error: unknown }> {
  try {
    return { value: await task() };
  } catch (error) {
    return { error };
  }
}

/** Carries a conflict out of an engine's transaction, which rolls back because this is thrown. */
class RolledBack extends Error {
  readonly conflict: Conflict;

  constructor(conflict: Conflict) {
    super('Rolled back');
    this.conflict = conflict;
  }
}

/**
 * The transaction handed to the work. Its calls go to the engine one after the other (drivers forbid parallel ones),
 * and the first that fails dooms it: MongoDB has rolled back by then, so the other engines must not commit either.
 */
class CheckedTransaction implements StoreTransaction {
  readonly get: StoreReader['get'];
  readonly scan: StoreReader['scan'];
  readonly native: unknown;
  readonly #engine: EngineTransaction;
  readonly #layouts: Layouts;
  readonly #translate: (error: unknown) => unknown;
  readonly #turns = new Mutex();
  #failure: { readonly raw: unknown; readonly translated: unknown } | undefined;
  #over = false;

  constructor(engine: EngineTransaction, layouts: Layouts, translate: (error: unknown) => unknown) {
    this.#engine = engine;
    this.#layouts = layouts;
    this.#translate = translate;
    this.native = engine.native;
    ({ get: this.get, scan: this.scan } = createReader(engine, layouts, (task) => this.#run(task)));
  }

  async write(writes: readonly Write[]): Promise<void> {
    const checked = writes.map((write) => readWrite(this.#layouts, write));
    if (checked.length === 0) return;
    await this.#run(async () => {
      const conflict = await writeMeasured(this.#engine, checked);
      if (conflict === undefined) return;
      throw new HcpError('store_conflict', `Write ${conflict.write} of the transaction: ${conflict.reason}`, {
        reason: conflict.reason,
      });
    });
  }

  /** Waits for calls the work did not wait for, then throws what dooms the transaction, if something does. */
  async end(workFailed: boolean): Promise<void> {
    this.#over = true;
    await this.#turns.run(() => {});
    if (this.#failure === undefined) return;
    // An engine's own failure must reach the engine, which may run the work again; a conflict is final, and then what
    // the work threw because of it says more.
    const { raw, translated } = this.#failure;
    if (raw !== translated || !workFailed) throw raw;
  }

  async #run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#over) throw new TypeError('The transaction is over');
    return this.#turns.run(async () => {
      if (this.#failure !== undefined) throw this.#failure.translated;
      try {
        return await task();
      } catch (raw) {
        this.#failure = { raw, translated: this.#translate(raw) };
        throw this.#failure.translated;
      }
    });
  }
}

async function writeMeasured(tx: EngineTransaction, writes: readonly CheckedWrite[]): Promise<Conflict | undefined> {
  const conflict = await tx.write(writes);
  if (conflict !== undefined) return conflict;
  for (const write of writes) {
    if (!isLargePatch(write)) continue;
    const row = await tx.get(write.table, write.key);
    if (row !== undefined) refuseTooLarge(write.table, row);
  }
  return undefined;
}

function isLargePatch(write: CheckedWrite): boolean {
  if (write.kind !== 'patch') return false;
  let units = 0;
  for (const { value } of write.set) if (typeof value === 'string') units += value.length;
  return units > LARGE_PATCH;
}
