import type { DatabaseSync } from 'node:sqlite';
import { type Clock, systemClock } from '../../clock.ts';
import { createStore } from '../create-store.ts';
import type { CheckedWrite, Engine, EngineTransaction, Values } from '../engine.ts';
import { layoutsOf, type TableLayout } from '../layout.ts';
import { Mutex } from '../mutex.ts';
import type { Conflict, Key, Store } from '../store.ts';
import { hcpTables, type Tables } from '../tables.ts';
import {
  commit,
  immediately,
  openDatabase,
  rollBack,
  type Synchronous,
  sqliteCode,
  toStoreError,
  withBusyRetry,
} from './database.ts';
import { prepareLayout } from './layout.ts';
import { checkSql, deleteSql, Statements, scanSql, tableSql, updateSql } from './statements.ts';

export interface SqliteStoreOptions {
  /** The database file; made if it is missing. It may hold other tables and the SQLite transport too. */
  readonly path: string;
  /** @default hcpTables */
  readonly tables?: Tables;
  /** What `now()` tells, and what waits for locks. @default systemClock */
  readonly clock?: Clock;
  /** `NORMAL` is faster and may lose the last commits in a power cut, never in a crash of the program. @default 'FULL' */
  readonly synchronous?: Synchronous;
}

/**
 * A store in a file, shared by the processes of one machine. `transaction.native` is the `DatabaseSync` on which the
 * transaction is open.
 * Rejects with `store_unsupported` when the file is not a database or was laid out by a newer version.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, tables = hcpTables, clock = systemClock, synchronous = 'FULL' } = options;
  if (path === '' || path === ':memory:') throw new TypeError('path must name a file: use the memory store for none');
  const layouts = layoutsOf(tables);
  const writer = await openDatabase(path, { synchronous, clock });
  try {
    await withBusyRetry(clock, () => immediately(writer, () => prepareLayout(writer, layouts.values())));
    const reader = await openDatabase(path, { synchronous, clock });
    return createStore(createEngine(writer, reader, clock), tables, layouts);
  } catch (error) {
    writer.close();
    throw toStoreError(error, `Cannot use ${path}`);
  }
}

/**
 * Reads have a connection of their own: on the writer's they would see the uncommitted rows of a transaction that is
 * waiting for something.
 */
function createEngine(writer: DatabaseSync, reader: DatabaseSync, clock: Clock): Engine {
  const writers = new Mutex();
  const reading = new Statements(reader);
  const writing = new Statements(writer);

  const transaction: EngineTransaction = {
    get: async (table, key) => writing.get(table, tableSql(table).select, key),
    scan: async (stretch) => writing.all(stretch.table, ...scanSql(stretch)),
    write: async (writes) => applyAll(writing, writes),
    native: writer,
  };

  return {
    get: (table, key) => withBusyRetry(clock, () => reading.get(table, tableSql(table).select, key)),
    scan: (stretch) => withBusyRetry(clock, () => reading.all(stretch.table, ...scanSql(stretch))),
    commit: (writes) => writers.run(() => withBusyRetry(clock, () => commitAll(writer, writing, writes))),
    append: (table, rows) =>
      writers.run(() => withBusyRetry(clock, () => immediately(writer, () => insertAll(writing, table, rows)))),
    transaction: (work) =>
      writers.run(async () => {
        await withBusyRetry(clock, () => writer.exec('BEGIN IMMEDIATE'));
        try {
          const result = await work(transaction);
          commit(writer);
          return result;
        } catch (error) {
          rollBack(writer);
          throw error;
        }
      }),
    now: async () => clock.now(),
    async close() {
      reader.close();
      writer.close();
    },
    translate: (error) => toStoreError(error),
  };
}

function commitAll(
  database: DatabaseSync,
  statements: Statements,
  writes: readonly CheckedWrite[],
): Conflict | undefined {
  database.exec('BEGIN IMMEDIATE');
  try {
    const conflict = applyAll(statements, writes);
    if (conflict === undefined) commit(database);
    else rollBack(database);
    return conflict;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

function insertAll(statements: Statements, table: TableLayout, rows: readonly Values[]): Conflict | undefined {
  const { insert } = tableSql(table);
  for (const [write, row] of rows.entries()) {
    if (statements.run(insert, row) === 0) return { write, reason: 'exists' };
  }
  return undefined;
}

function applyAll(statements: Statements, writes: readonly CheckedWrite[]): Conflict | undefined {
  for (const [write, checked] of writes.entries()) {
    const reason = apply(statements, checked);
    if (reason !== undefined) return { write, reason };
  }
  return undefined;
}

const SQLITE_CONSTRAINT = 19;

function apply(statements: Statements, write: CheckedWrite): Conflict['reason'] | undefined {
  try {
    return attempt(statements, write);
  } catch (error) {
    // Rows have been checked, so the only constraint left to violate is a unique index.
    if (sqliteCode(error) === SQLITE_CONSTRAINT) return 'exists';
    throw error;
  }
}

function attempt(statements: Statements, write: CheckedWrite): Conflict['reason'] | undefined {
  const { table, key } = write;
  switch (write.kind) {
    case 'insert':
      return statements.run(tableSql(table).insert, write.row) === 1 ? undefined : 'exists';
    case 'put': {
      if (write.tests === undefined) {
        statements.run(tableSql(table).put, write.row);
        return undefined;
      }
      const values = [...write.row, ...key, ...write.tests.map((test) => test.value)];
      const changed = statements.run(updateSql(table, table.columns, write.tests), values);
      return changed === 1 ? undefined : whyNot(statements, table, key);
    }
    case 'patch': {
      const columns = write.set.map((assignment) => assignment.column);
      const values = [...write.set.map(({ value }) => value), ...key, ...write.tests.map((test) => test.value)];
      const changed = statements.run(updateSql(table, columns, write.tests), values);
      return changed === 1 ? undefined : whyNot(statements, table, key);
    }
    case 'delete': {
      const tests = write.tests ?? [];
      const deleted = statements.run(deleteSql(table, tests), [...key, ...tests.map((test) => test.value)]);
      return deleted === 1 || write.tests === undefined ? undefined : whyNot(statements, table, key);
    }
    case 'check': {
      const values = [...key, ...write.tests.map((test) => test.value)];
      return statements.finds(checkSql(table, write.tests), values) ? undefined : whyNot(statements, table, key);
    }
    case 'absent':
      return statements.finds(tableSql(table).exists, key) ? 'exists' : undefined;
  }
}

function whyNot(statements: Statements, table: TableLayout, key: Key): 'missing' | 'mismatch' {
  return statements.finds(tableSql(table).exists, key) ? 'mismatch' : 'missing';
}
