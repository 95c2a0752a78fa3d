import type { TableName, Tables } from './tables.ts';

/** What a column holds. Text is Unicode without lone surrogates, compared by code point; numbers are safe integers. */
export type Value = string | number | null;

/** One record: every declared column, `null` where there is nothing. Payloads are exact JSON text in a text column. */
export type Row = Readonly<Record<string, Value>>;

/** The values of a table's key columns, in their declared order. */
export type Key = readonly (string | number)[];

/** Must hold of the stored row for a write to happen: equal to the value, or a number below the bound. */
export type Condition = Readonly<Record<string, Value | { readonly below: number }>>;

/**
 * One step of a commit.
 * `insert` wants the key (and every unique index) free. `put` writes the whole row whether or not it exists, unless
 * `if` is given: then the row must exist and match. `patch` changes some columns of a row that exists (and matches).
 * `delete` without `if` accepts a missing row. `check` writes nothing.
 */
export type Write =
  | { readonly insert: TableName; readonly row: Row }
  | { readonly put: TableName; readonly row: Row; readonly if?: Condition }
  | { readonly patch: TableName; readonly key: Key; readonly set: Row; readonly if?: Condition }
  | { readonly delete: TableName; readonly key: Key; readonly if?: Condition }
  | { readonly check: TableName; readonly key: Key; readonly if: Condition | 'absent' };

/** Which write could not be done, by its place in the list, and why. An answer, not an exception. */
export interface Conflict {
  readonly write: number;
  /** `exists`: the key or a unique index is taken. `missing`: no such row. `mismatch`: the condition does not hold. */
  readonly reason: 'exists' | 'missing' | 'mismatch';
}

/**
 * A stretch of an index: rows whose leading index columns equal `where`, and whose next column lies within
 * `from`…`to` (both inclusive). Rows with a `null` in an index column are not in that index.
 */
export interface Range {
  readonly where?: Key;
  readonly from?: string | number;
  readonly to?: string | number;
  /** Continue behind this row of an earlier page: index columns, then key, decide what "behind" is. */
  readonly after?: Row;
  /** @default 'ascending' */
  readonly order?: 'ascending' | 'descending';
  /** How many rows at most, 1 to 1,000. @default 100 */
  readonly limit?: number;
}

export interface StoreReader {
  get(table: TableName, key: Key): Promise<Row | undefined>;
  /** Rows in index order, ties in key order. `index` is a declared index, or `'key'`. */
  scan(table: TableName, index: string, range?: Range): Promise<readonly Row[]>;
}

/** Reads and writes that become visible together, or not at all. */
export interface StoreTransaction extends StoreReader {
  /** A conflict throws `store_conflict` and dooms the transaction, even if the work swallows the error. */
  write(writes: readonly Write[]): Promise<void>;
  /** The engine's own handle, for the program's writes: MongoDB's `ClientSession`, SQLite's `DatabaseSync`, else `undefined`. */
  readonly native: unknown;
}

/** Records in tables. Three engines, one behaviour: rules never live in an adapter. */
export interface Store extends StoreReader, AsyncDisposable {
  readonly tables: Tables;
  /** All writes or none, durable when it resolves. `store_outcome_unknown`: look before you repeat it. */
  commit(writes: readonly Write[]): Promise<'committed' | Conflict>;
  /**
   * Inserts rows of one table in order and stops at the first whose key is taken: what comes before it stays.
   * For logs, where every prefix is valid: cheaper than a commit, one round trip for any number of rows.
   */
  append(table: TableName, rows: readonly Row[]): Promise<'appended' | Conflict>;
  /** Runs `work`, perhaps more than once: it must have no effect outside the transaction. What it throws rolls back. */
  transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T>;
  /** The engine's clock, in milliseconds since 1970: the judge of leases. */
  now(): Promise<number>;
  /** Waits for what is running; later calls reject with `store_closed`. Idempotent. */
  close(): Promise<void>;
}
