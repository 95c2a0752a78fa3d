import { type Document, type FindOptions, MaxKey, MinKey } from 'mongodb';
import type { Assignment, Bound, Stretch, Test, Values } from '../engine.ts';
import type { Column, IndexLayout, TableLayout } from '../layout.ts';
import type { Key } from '../store.ts';

/**
 * A row as MongoDB keeps it: the key columns, in order, are the `_id`, so that its index serves `get`, uniqueness and
 * scans by key alone. A column that is null is left out: partial indexes ask whether it exists.
 */
export interface RowDocument extends Document {
  _id: Document;
}

export function idOf(table: TableLayout, key: Key): Document {
  const id: Document = {};
  for (const [i, column] of table.key.entries()) id[column.name] = key[i];
  return id;
}

export function toDocument(table: TableLayout, row: Values): RowDocument {
  const id: Document = {};
  for (const column of table.key) id[column.name] = row[column.at];
  const document: RowDocument = { _id: id };
  for (const column of table.columns) {
    const value = row[column.at];
    if (value !== null && !column.inKey) document[column.name] = value;
  }
  return document;
}

export function toValues(table: TableLayout, document: Document): Values {
  return table.columns.map(({ name, inKey }) => {
    const owner = inKey ? document._id : document;
    return Object.hasOwn(owner, name) ? owner[name] : null;
  });
}

/** Where a column is found in a document. */
export function pathOf(column: Column): string {
  return column.inKey ? `_id.${column.name}` : column.name;
}

export function filterOf(table: TableLayout, key: Key, tests: readonly Test[] = []): Document {
  const filter: Document = { _id: idOf(table, key) };
  if (tests.length > 0) {
    // A list of terms, since two may speak of one column. `$eq: null` is true of a column that is left out.
    filter.$and = tests.map(({ column, is, value }) => ({
      [pathOf(column)]: is === 'equal' ? { $eq: value } : { $lt: value },
    }));
  }
  return filter;
}

export function updateOf(set: readonly Assignment[]): Document {
  const $set: Document = {};
  const $unset: Document = {};
  for (const { column, value } of set) {
    if (value === null) $unset[column.name] = '';
    else $set[column.name] = value;
  }
  return { $set, $unset };
}

export function indexKeyOf(index: IndexLayout): Record<string, 1> {
  const key: Record<string, 1> = {};
  for (const column of index.columns) key[pathOf(column)] = 1;
  if (!index.unique) key._id = 1;
  return key;
}

export function partialFilterOf(index: IndexLayout): Document | undefined {
  const nullable = index.columns.filter((column) => column.nullable);
  if (nullable.length === 0) return undefined;
  return Object.fromEntries(nullable.map((column) => [pathOf(column), { $exists: true }]));
}

/**
 * A scan as bounds on the index itself (`min` and `max` with a hint), which say "behind this row" directly; a filter
 * would need an `$or` of one branch per column, and the planner's good will.
 */
export function findOf(stretch: Stretch): [filter: Document, options: FindOptions] {
  const { index, lower, upper, descending, limit } = stretch;
  const isKey = index.name === 'key';
  const key = isKey ? { _id: 1 as const } : indexKeyOf(index);
  const direction = descending ? -1 : 1;
  const options: FindOptions = {
    hint: isKey ? '_id_' : index.name,
    // `min` is inclusive and `max` is not: the filter below and `justBehind` make up for it.
    min: tupleOf(stretch, lower, new MinKey()),
    max: tupleOf(stretch, upper.inclusive ? justBehind(index, upper) : upper, new MaxKey()),
    sort: Object.fromEntries(Object.keys(key).map((path) => [path, direction])),
    limit,
    batchSize: limit,
  };
  return [lower.inclusive ? {} : { $nor: [exactly(stretch, lower)] }, options];
}

/**
 * The bound that has every row of an inclusive one below it. Where columns are left over, the largest value in them does
 * that; else the last value makes room for itself: nothing lies between a text and the same with NUL added, nor between
 * two integers.
 */
function justBehind(index: IndexLayout, bound: Bound): Bound {
  const last = bound.values.at(-1);
  // An index that is not unique has the whole `_id` left over.
  if (!index.unique || last === undefined || bound.values.length < index.columns.length) return bound;
  const next = typeof last === 'string' ? `${last}\0` : last + 1;
  return { ...bound, values: bound.values.with(-1, next) };
}

function tupleOf({ table, index }: Stretch, bound: Bound, rest: MinKey | MaxKey): Document {
  if (index.name === 'key') return { _id: idOf(table, fill(index, bound, rest)) };
  const tuple: Document = {};
  for (const [i, column] of index.columns.entries()) tuple[pathOf(column)] = bound.values[i] ?? rest;
  // An exclusive bound names one row, the one to go on behind, with a value for every column of the order.
  if (!index.unique) tuple._id = bound.inclusive ? rest : idOf(table, keyIn(table, index, bound));
  return tuple;
}

function exactly({ index }: Stretch, bound: Bound): Document {
  const row: Document = {};
  for (const [i, column] of index.order.entries()) row[pathOf(column)] = { $eq: bound.values[i] };
  return row;
}

function fill(index: IndexLayout, bound: Bound, rest: MinKey | MaxKey): Key {
  // The driver writes these two as it writes numbers and texts.
  return index.columns.map((_, i) => bound.values[i] ?? (rest as unknown as string));
}

function keyIn(table: TableLayout, index: IndexLayout, bound: Bound): Key {
  return table.key.map((column) => bound.values[index.order.indexOf(column)] ?? '');
}
