import type { Column, IndexLayout, TableLayout } from './layout.ts';
import type { Conflict, Key, Value } from './store.ts';

/** A row as engines see it: the values of the table's columns, in declared order. Never changed once made. */
export type Values = readonly Value[];

/** One term of a condition. */
export interface Test {
  readonly column: Column;
  readonly is: 'equal' | 'below';
  readonly value: Value;
}

export interface Assignment {
  readonly column: Column;
  readonly value: Value;
}

/** A write whose names, values and size have been checked. Without `tests` there was no `if`. */
export type CheckedWrite =
  | { readonly kind: 'insert'; readonly table: TableLayout; readonly key: Key; readonly row: Values }
  | {
      readonly kind: 'put';
      readonly table: TableLayout;
      readonly key: Key;
      readonly row: Values;
      readonly tests: readonly Test[] | undefined;
    }
  | {
      readonly kind: 'patch';
      readonly table: TableLayout;
      readonly key: Key;
      readonly set: readonly Assignment[];
      readonly tests: readonly Test[];
    }
  | {
      readonly kind: 'delete';
      readonly table: TableLayout;
      readonly key: Key;
      readonly tests: readonly Test[] | undefined;
    }
  | { readonly kind: 'check'; readonly table: TableLayout; readonly key: Key; readonly tests: readonly Test[] }
  | { readonly kind: 'absent'; readonly table: TableLayout; readonly key: Key };

/** One end of a stretch: values of the leading columns of the index's order. */
export interface Bound {
  readonly values: Key;
  readonly inclusive: boolean;
}

/** A checked range: what lies between two bounds. Both begin with `where`, and they are never the wrong way round. */
export interface Stretch {
  readonly table: TableLayout;
  readonly index: IndexLayout;
  readonly where: Key;
  readonly lower: Bound;
  readonly upper: Bound;
  readonly descending: boolean;
  readonly limit: number;
}

export interface EngineReader {
  get(table: TableLayout, key: Key): Promise<Values | undefined>;
  scan(stretch: Stretch): Promise<readonly Values[]>;
}

export interface EngineTransaction extends EngineReader {
  /** In the order given. After a conflict the transaction is never committed. */
  write(writes: readonly CheckedWrite[]): Promise<Conflict | undefined>;
  readonly native: unknown;
}

/**
 * What an engine has to do itself. `createStore` makes a `Store` of it: engines see checked input only, are not called
 * after `close`, get the calls of one transaction one after the other, and may throw what their driver throws.
 */
export interface Engine extends EngineReader {
  /** Never called with an empty list. */
  commit(writes: readonly CheckedWrite[]): Promise<Conflict | undefined>;
  /** Never called with an empty list. */
  append(table: TableLayout, rows: readonly Values[]): Promise<Conflict | undefined>;
  /** Commits when `work` resolves, rolls back and rejects with its error when it rejects. May run it again. */
  transaction<T>(work: (tx: EngineTransaction) => Promise<T>): Promise<T>;
  now(): Promise<number>;
  close(): Promise<void>;
  /** The `HcpError` for something thrown by the driver; what is not the driver's comes back as it is. */
  translate(error: unknown): unknown;
}
