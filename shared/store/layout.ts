import type { Table, Tables } from './tables.ts';

export interface Column {
  readonly name: string;
  /** Its place in a row's {@link Values}. */
  readonly at: number;
  readonly type: 'text' | 'integer';
  readonly nullable: boolean;
  readonly inKey: boolean;
}

export interface IndexLayout {
  readonly name: string;
  readonly columns: readonly Column[];
  readonly unique: boolean;
  /** What puts any two rows of the index in order: its columns and, unless they are unique, the rest of the key. */
  readonly order: readonly Column[];
}

/** A declared table with everything looked up once that engines ask for at each call. */
export interface TableLayout {
  readonly name: string;
  readonly columns: readonly Column[];
  readonly byName: ReadonlyMap<string, Column>;
  readonly key: readonly Column[];
  /** The declared indexes, without the key. */
  readonly indexes: readonly IndexLayout[];
  /** The declared indexes and `'key'`. */
  readonly orders: ReadonlyMap<string, IndexLayout>;
}

/** A name that needs no escaping in any engine, and can be told from the engines' own (`hcp__layout`, `_id`). */
const NAME = /^[a-z][a-z0-9_]{0,47}$/;
const KEY = 'key';

/** Throws a `TypeError` for a declaration that makes no sense. */
export function layoutsOf(tables: Tables): ReadonlyMap<string, TableLayout> {
  return new Map(Object.entries(tables).map(([name, table]) => [name, layoutOf(name, table)]));
}

function layoutOf(name: string, table: Table): TableLayout {
  requireName('table', name);
  const columns = Object.entries(table.columns).map(([column, type], at): Column => {
    requireName('column', column);
    return {
      name: column,
      at,
      type: type.startsWith('text') ? 'text' : 'integer',
      nullable: type.endsWith('?'),
      inKey: table.key.includes(column),
    };
  });
  const byName = new Map(columns.map((column) => [column.name, column]));
  const pick = (names: readonly string[]): readonly Column[] =>
    names.map((wanted) => {
      const column = byName.get(wanted);
      if (column === undefined) throw new TypeError(`Table ${name} has no column ${wanted}`);
      return column;
    });
  const key = pick(table.key);
  if (key.length === 0 || key.some((column) => column.nullable)) {
    throw new TypeError(`Table ${name} needs a key of columns that are never null`);
  }
  const indexes = Object.entries(table.indexes).map(([index, declared]): IndexLayout => {
    requireName('index', index);
    if (index === KEY) throw new TypeError(`Table ${name}: '${KEY}' is the name of the key itself`);
    const own = pick(declared.columns);
    const unique = declared.unique ?? false;
    const order = unique ? own : [...own, ...key.filter((column) => !own.includes(column))];
    return { name: index, columns: own, unique, order };
  });
  const keyOrder: IndexLayout = { name: KEY, columns: key, unique: true, order: key };
  const orders = new Map([keyOrder, ...indexes].map((index) => [index.name, index]));
  return { name, columns, byName, key, indexes, orders };
}

function requireName(what: string, name: string): void {
  if (!NAME.test(name)) throw new TypeError(`'${name}' cannot be the name of a ${what}`);
}
