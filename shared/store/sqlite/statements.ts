import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Stretch, Test, Values } from '../engine.ts';
import type { Column, IndexLayout, TableLayout } from '../layout.ts';
import type { Value } from '../store.ts';

/** The statements of one connection, each prepared once. */
export class Statements {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Whether it finds a row. */
  finds(sql: string, values: readonly Value[]): boolean {
    return this.#statement(sql).get(...values) !== undefined;
  }

  /** The first row it finds, in the columns of `table`. */
  get(table: TableLayout, sql: string, values: readonly Value[]): Values | undefined {
    const row = this.#statement(sql).get(...values);
    return row && toValues(table, row);
  }

  all(table: TableLayout, sql: string, values: readonly Value[]): Values[] {
    return this.#statement(sql)
      .all(...values)
      .map((row) => toValues(table, row));
  }

  /** How many rows it changed. */
  run(sql: string, values: readonly Value[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  #statement(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }
}

function toValues(table: TableLayout, row: Readonly<Record<string, unknown>>): Values {
  return table.columns.map(({ name }) => {
    const value = row[name];
    // The columns are text and integers, which come as string, number and null.
    return value instanceof Uint8Array ? Buffer.from(value).toString() : (value as Value);
  });
}

/** The columns as `toValues` wants them. Node 22 cuts a text at its first NUL, but not the bytes of it. */
function selected(columns: readonly Column[]): string {
  if (readsWholeText()) return names(columns);
  return columns
    .map(({ name, type }) => (type === 'text' ? `CAST("${name}" AS BLOB) AS "${name}"` : `"${name}"`))
    .join(', ');
}

let wholeText: boolean | undefined;

function readsWholeText(): boolean {
  if (wholeText === undefined) {
    const database = new DatabaseSync(':memory:');
    wholeText = database.prepare('SELECT char(97, 0, 98) AS text').get()?.text === 'a\0b';
    database.close();
  }
  return wholeText;
}

export function tableName(table: TableLayout): string {
  return `"hcp_${table.name}"`;
}

export function indexName(table: TableLayout, index: IndexLayout): string {
  return `"hcp_${table.name}_${index.name}"`;
}

export function createTableSql(table: TableLayout): string {
  const columns = table.columns.map((column) => columnSql(column));
  return `CREATE TABLE IF NOT EXISTS ${tableName(table)} (${columns.join(', ')}, PRIMARY KEY (${names(table.key)})) STRICT`;
}

export function columnSql(column: Column): string {
  return `"${column.name}" ${column.type.toUpperCase()}${column.nullable ? '' : ' NOT NULL'}`;
}

export function createIndexSql(table: TableLayout, index: IndexLayout): string {
  const nullable = index.columns.filter((column) => column.nullable);
  const where = nullable.length === 0 ? '' : ` WHERE ${nullable.map(isNotNull).join(' AND ')}`;
  const unique = index.unique ? 'UNIQUE ' : '';
  return `CREATE ${unique}INDEX ${indexName(table, index)} ON ${tableName(table)} (${names(index.order)})${where}`;
}

/** The statements of a table that never vary. */
export interface TableSql {
  readonly select: string;
  readonly exists: string;
  readonly insert: string;
  readonly put: string;
}

const tableSqls = new WeakMap<TableLayout, TableSql>();

export function tableSql(table: TableLayout): TableSql {
  let sql = tableSqls.get(table);
  if (sql === undefined) {
    const insert = `INSERT INTO ${tableName(table)} (${names(table.columns)}) VALUES (${table.columns.map(() => '?').join(', ')})`;
    const rest = table.columns.filter((column) => !column.inKey);
    const update =
      rest.length === 0
        ? 'NOTHING'
        : `UPDATE SET ${rest.map((column) => `"${column.name}" = excluded."${column.name}"`).join(', ')}`;
    sql = {
      select: `SELECT ${selected(table.columns)} FROM ${tableName(table)} WHERE ${matching(table, [])}`,
      exists: `SELECT 1 FROM ${tableName(table)} WHERE ${matching(table, [])}`,
      // A taken key or unique index is an answer (no row changed), not an exception.
      insert: `${insert} ON CONFLICT DO NOTHING`,
      put: `${insert} ON CONFLICT (${names(table.key)}) DO ${update}`,
    };
    tableSqls.set(table, sql);
  }
  return sql;
}

export function updateSql(table: TableLayout, set: readonly Column[], tests: readonly Test[]): string {
  const assignments = set.map((column) => `"${column.name}" = ?`).join(', ');
  return `UPDATE ${tableName(table)} SET ${assignments} WHERE ${matching(table, tests)}`;
}

export function deleteSql(table: TableLayout, tests: readonly Test[]): string {
  return `DELETE FROM ${tableName(table)} WHERE ${matching(table, tests)}`;
}

export function checkSql(table: TableLayout, tests: readonly Test[]): string {
  return `SELECT 1 FROM ${tableName(table)} WHERE ${matching(table, tests)}`;
}

/** A scan and its values. */
export function scanSql(stretch: Stretch): [sql: string, values: readonly Value[]] {
  const { table, index, where, lower, upper, descending, limit } = stretch;
  const terms = where.map((_, i) => `"${index.order[i]?.name}" = ?`);
  const values: Value[] = [...where];
  for (const [bound, sign] of [[lower, '>'] as const, [upper, '<'] as const]) {
    const tuple = bound.values.slice(where.length);
    if (tuple.length === 0) continue;
    const columns = names(index.order.slice(where.length, bound.values.length));
    terms.push(`(${columns}) ${sign}${bound.inclusive ? '=' : ''} (${tuple.map(() => '?').join(', ')})`);
    values.push(...tuple);
  }
  // Partial indexes are used only where the query says the same as they do.
  terms.push(...index.columns.filter((column) => column.nullable).map(isNotNull));
  const by = index.name === 'key' ? '' : ` INDEXED BY ${indexName(table, index)}`;
  const filter = terms.length === 0 ? '' : ` WHERE ${terms.join(' AND ')}`;
  const order = index.order.map((column) => `"${column.name}"${descending ? ' DESC' : ''}`).join(', ');
  const sql = `SELECT ${selected(table.columns)} FROM ${tableName(table)}${by}${filter} ORDER BY ${order} LIMIT ?`;
  return [sql, [...values, limit]];
}

function matching(table: TableLayout, tests: readonly Test[]): string {
  const key = table.key.map((column) => `"${column.name}" = ?`);
  const rest = tests.map(({ column, is }) => `"${column.name}" ${is === 'equal' ? 'IS' : '<'} ?`);
  return [...key, ...rest].join(' AND ');
}

function isNotNull(column: Column): string {
  return `"${column.name}" IS NOT NULL`;
}

function names(columns: readonly Column[]): string {
  return columns.map((column) => `"${column.name}"`).join(', ');
}
