import { HcpError } from '../errors.ts';
import type { Assignment, Bound, CheckedWrite, Stretch, Test, Values } from './engine.ts';
import type { Column, IndexLayout, TableLayout } from './layout.ts';
import { compareToTuple, compareValues } from './order.ts';
import type { Condition, Key, Range, Row, Value, Write } from './store.ts';

/** The most UTF-8 a row's texts may take together: it fits MongoDB's 16 MiB documents with room for the rest. */
export const MAX_ROW_BYTES = 15 * 1024 * 1024;
const MOST_BYTES_PER_UNIT = 3;

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

type Layouts = ReadonlyMap<string, TableLayout>;

export function tableOf(layouts: Layouts, name: string): TableLayout {
  const table = layouts.get(name);
  if (table === undefined) throw new TypeError(`There is no table ${name}`);
  return table;
}

/** Reads a row into values of the table's order: the check and the defensive copy in one pass. */
export function readRow(table: TableLayout, row: Row): Values {
  const values = table.columns.map((column) => readValue(table, column, row[column.name]));
  if (Object.keys(row).length !== values.length) {
    const unknown = Object.keys(row).find((name) => !table.byName.has(name));
    throw new TypeError(`Table ${table.name} has no column ${unknown}`);
  }
  refuseTooLarge(table, values);
  return values;
}

export function toRow(table: TableLayout, values: Values): Row {
  const row: Record<string, Value> = {};
  for (const column of table.columns) row[column.name] = values[column.at] ?? null;
  return row;
}

export function readKey(table: TableLayout, key: Key): Key {
  if (key.length !== table.key.length) {
    throw new TypeError(`The key of ${table.name} is ${table.key.map((column) => column.name).join(', ')}`);
  }
  return readTuple(table, table.key, key);
}

export function readWrite(layouts: Layouts, write: Write): CheckedWrite {
  if ('insert' in write) {
    const table = tableOf(layouts, write.insert);
    const row = readRow(table, write.row);
    return { kind: 'insert', table, key: keyOf(table, row), row };
  }
  if ('put' in write) {
    const table = tableOf(layouts, write.put);
    const row = readRow(table, write.row);
    return { kind: 'put', table, key: keyOf(table, row), row, tests: readOptionalTests(table, write.if) };
  }
  if ('patch' in write) {
    const table = tableOf(layouts, write.patch);
    const key = readKey(table, write.key);
    return { kind: 'patch', table, key, set: readSet(table, write.set), tests: readTests(table, write.if ?? {}) };
  }
  if ('delete' in write) {
    const table = tableOf(layouts, write.delete);
    return { kind: 'delete', table, key: readKey(table, write.key), tests: readOptionalTests(table, write.if) };
  }
  if ('check' in write) {
    const table = tableOf(layouts, write.check);
    const key = readKey(table, write.key);
    if (write.if === 'absent') return { kind: 'absent', table, key };
    return { kind: 'check', table, key, tests: readTests(table, write.if) };
  }
  throw new TypeError('A write is one of insert, put, patch, delete and check');
}

/** `undefined` when the bounds leave no room for any row. */
export function readRange(table: TableLayout, indexName: string, range: Range): Stretch | undefined {
  const index = table.orders.get(indexName);
  if (index === undefined) throw new TypeError(`Table ${table.name} has no index ${indexName}`);
  const { limit = DEFAULT_LIMIT, order = 'ascending' } = range;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw new TypeError(`limit must be an integer from 1 to ${MAX_LIMIT}`);
  }
  if (order !== 'ascending' && order !== 'descending') {
    throw new TypeError(`order must be 'ascending' or 'descending'`);
  }
  const where = readTuple(table, index.columns, range.where ?? []);
  const end = (value: string | number | undefined): Bound => ({
    values: value === undefined ? where : [...where, readNext(table, index, where, value)],
    inclusive: true,
  });
  let lower = end(range.from);
  let upper = end(range.to);
  if (range.after !== undefined) {
    const after = readAfter(table, index, where, range.after);
    const tuple = index.order.map((column) => presentIn(after, column));
    // The bound stays when it is the narrower one: a page may be asked for with other bounds than the one before.
    if (order === 'ascending' && compareToTuple(index.order, after, lower.values) >= 0) {
      lower = { values: tuple, inclusive: false };
    }
    if (order === 'descending' && compareToTuple(index.order, after, upper.values) <= 0) {
      upper = { values: tuple, inclusive: false };
    }
  }
  if (isEmpty(lower, upper)) return undefined;
  return { table, index, where, lower, upper, descending: order === 'descending', limit };
}

/** Throws `store_record_too_large` when the texts of a row take more than {@link MAX_ROW_BYTES}. */
export function refuseTooLarge(table: TableLayout, values: Values): void {
  let units = 0;
  for (const value of values) if (typeof value === 'string') units += value.length;
  if (units * MOST_BYTES_PER_UNIT <= MAX_ROW_BYTES) return;
  let bytes = 0;
  for (const value of values) if (typeof value === 'string') bytes += Buffer.byteLength(value);
  if (bytes > MAX_ROW_BYTES) {
    throw new HcpError(
      'store_record_too_large',
      `A row of ${table.name} has ${bytes} bytes of text, and ${MAX_ROW_BYTES} is the most`,
    );
  }
}

function keyOf(table: TableLayout, row: Values): Key {
  return table.key.map((column) => presentIn(row, column));
}

function presentIn(row: Values, column: Column): string | number {
  const value = row[column.at];
  if (value === undefined || value === null)
    throw new TypeError(`A row whose ${column.name} is null is not in the index`);
  return value;
}

function readValue(table: TableLayout, column: Column, value: unknown): Value {
  if (typeof value === 'string' && column.type === 'text') {
    if (value.isWellFormed()) return value;
    throw invalid(table, column, 'is not Unicode: it holds half of a surrogate pair');
  }
  if (typeof value === 'number' && column.type === 'integer') {
    // Adding 0 turns -0, which some engines would keep, into 0.
    if (Number.isSafeInteger(value)) return value + 0;
    throw invalid(table, column, `is not a safe integer: ${value}`);
  }
  if (value === null && column.nullable) return null;
  if (value === undefined) throw new TypeError(`A row of ${table.name} needs ${column.name}`);
  throw invalid(table, column, `must be ${column.type}${column.nullable ? ' or null' : ''}, not ${nameOf(value)}`);
}

// The value itself may be a secret or 15 MiB long.
function nameOf(value: unknown): string {
  return value === null ? 'null' : `a ${typeof value}`;
}

function invalid(table: TableLayout, column: Column, problem: string): HcpError {
  return new HcpError('store_value_invalid', `${table.name}.${column.name} ${problem}`);
}

function readTuple(table: TableLayout, columns: readonly Column[], tuple: Key): Key {
  if (tuple.length > columns.length)
    throw new TypeError(`There are ${columns.length} columns and ${tuple.length} values`);
  return tuple.map((value, i) => {
    const column = columns[i];
    return column === undefined ? value : readDefined(table, column, value);
  });
}

function readDefined(table: TableLayout, column: Column, value: string | number): string | number {
  const read = readValue(table, column, value);
  if (read === null) throw invalid(table, column, 'must not be null here');
  return read;
}

function readNext(table: TableLayout, index: IndexLayout, where: Key, value: string | number): string | number {
  const column = index.columns[where.length];
  if (column === undefined) throw new TypeError(`Index ${index.name} has no column left for from and to`);
  return readDefined(table, column, value);
}

function readAfter(table: TableLayout, index: IndexLayout, where: Key, row: Row): Values {
  const after = readRow(table, row);
  if (compareToTuple(index.order, after, where) !== 0) throw new TypeError('after must be a row of the same range');
  return after;
}

function isEmpty(lower: Bound, upper: Bound): boolean {
  for (let i = 0; i < Math.min(lower.values.length, upper.values.length); i++) {
    const difference = compareValues(lower.values[i], upper.values[i]);
    if (difference !== 0) return difference > 0;
  }
  // The same row at both ends, and one end leaves it out.
  return lower.values.length === upper.values.length && !(lower.inclusive && upper.inclusive);
}

function readSet(table: TableLayout, set: Row): readonly Assignment[] {
  const assignments = Object.entries(set).map(([name, value]): Assignment => {
    const column = columnOf(table, name);
    if (column.inKey) throw new TypeError(`${name} is part of the key of ${table.name}: it cannot be patched`);
    return { column, value: readValue(table, column, value) };
  });
  if (assignments.length === 0) throw new TypeError(`A patch of ${table.name} sets nothing`);
  refuseTooLarge(
    table,
    assignments.map((assignment) => assignment.value),
  );
  return assignments;
}

function readOptionalTests(table: TableLayout, condition: Condition | undefined): readonly Test[] | undefined {
  return condition === undefined ? undefined : readTests(table, condition);
}

function readTests(table: TableLayout, condition: Condition): readonly Test[] {
  return Object.entries(condition).map(([name, wanted]): Test => {
    const column = columnOf(table, name);
    if (typeof wanted !== 'object' || wanted === null) {
      return { column, is: 'equal', value: readValue(table, column, wanted) };
    }
    if (column.type !== 'integer') throw new TypeError(`${name} is text: below is for numbers`);
    return { column, is: 'below', value: readDefined(table, column, wanted.below) };
  });
}

function columnOf(table: TableLayout, name: string): Column {
  const column = table.byName.get(name);
  if (column === undefined) throw new TypeError(`Table ${table.name} has no column ${name}`);
  return column;
}
