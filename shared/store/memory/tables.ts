import { HcpError } from '../../errors.ts';
import type { Assignment, CheckedWrite, Stretch, Test, Values } from '../engine.ts';
import type { IndexLayout, TableLayout } from '../layout.ts';
import type { Conflict, Key, Value } from '../store.ts';
import { SortedRows } from './sorted-rows.ts';

interface TableRows {
  readonly declaration: string;
  /** Every row once per order: by key and by each index. */
  readonly orders: ReadonlyMap<string, SortedRows>;
}

/** All rows at one moment, by table. */
export type Snapshot = ReadonlyMap<string, TableRows>;

/** The snapshot with room for these tables. */
export function withTables(snapshot: Snapshot, layouts: Iterable<TableLayout>): Snapshot {
  const tables = new Map(snapshot);
  for (const table of layouts) {
    const declaration = JSON.stringify([table.columns, table.key, table.indexes]);
    const known = tables.get(table.name);
    if (known === undefined) {
      const orders = Array.from(table.orders.values(), (index): [string, SortedRows] => [
        index.name,
        new SortedRows(index.order),
      ]);
      tables.set(table.name, { declaration, orders: new Map(orders) });
    } else if (known.declaration !== declaration) {
      throw new HcpError('store_unsupported', `Table ${table.name} is declared in another way in this data`);
    }
  }
  return tables;
}

export function get(snapshot: Snapshot, table: TableLayout, key: Key): Values | undefined {
  return snapshot.get(table.name)?.orders.get('key')?.find(key);
}

export function scan(snapshot: Snapshot, { table, index, lower, upper, descending, limit }: Stretch): Values[] {
  return snapshot.get(table.name)?.orders.get(index.name)?.between(lower, upper, descending, limit) ?? [];
}

/** The snapshot after one write, or why it cannot be done. */
export function apply(snapshot: Snapshot, write: CheckedWrite): Snapshot | Conflict['reason'] {
  const { table, key } = write;
  const old = get(snapshot, table, key);
  switch (write.kind) {
    case 'insert':
      return old === undefined ? replace(snapshot, table, undefined, write.row) : 'exists';
    case 'put':
      return problem(old, write.tests) ?? replace(snapshot, table, old, write.row);
    case 'patch':
      if (old === undefined) return 'missing';
      return problem(old, write.tests) ?? replace(snapshot, table, old, patched(old, write.set));
    case 'delete':
      return problem(old, write.tests) ?? replace(snapshot, table, old, undefined);
    case 'check':
      return problem(old, write.tests) ?? snapshot;
    case 'absent':
      return old === undefined ? snapshot : 'exists';
  }
}

function problem(row: Values | undefined, tests: readonly Test[] | undefined): Conflict['reason'] | undefined {
  if (tests === undefined) return undefined;
  if (row === undefined) return 'missing';
  return tests.every((test) => holds(test, row[test.column.at] ?? null)) ? undefined : 'mismatch';
}

function holds(test: Test, value: Value): boolean {
  if (test.is === 'equal') return value === test.value;
  return typeof value === 'number' && typeof test.value === 'number' && value < test.value;
}

function patched(row: Values, set: readonly Assignment[]): Values {
  const values = [...row];
  for (const { column, value } of set) values[column.at] = value;
  return values;
}

function replace(
  snapshot: Snapshot,
  table: TableLayout,
  old: Values | undefined,
  row: Values | undefined,
): Snapshot | 'exists' {
  const before = snapshot.get(table.name);
  if (before === undefined) return snapshot;
  const orders = new Map<string, SortedRows>();
  for (const index of table.orders.values()) {
    let list = before.orders.get(index.name) ?? new SortedRows(index.order);
    if (old !== undefined && isIn(index, old)) list = list.without(old);
    if (row !== undefined && isIn(index, row)) {
      if (index.unique && list.find(tupleOf(index, row)) !== undefined) return 'exists';
      list = list.with(row);
    }
    orders.set(index.name, list);
  }
  return new Map(snapshot).set(table.name, { ...before, orders });
}

function isIn(index: IndexLayout, row: Values): boolean {
  return index.columns.every((column) => row[column.at] !== null);
}

function tupleOf(index: IndexLayout, row: Values): Key {
  // Rows with null in an index column are not in the index, and not asked for.
  return index.columns.map((column) => row[column.at] as string | number);
}
