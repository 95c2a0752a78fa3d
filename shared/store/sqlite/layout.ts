import type { DatabaseSync } from 'node:sqlite';
import { HcpError } from '../../errors.ts';
import type { TableLayout } from '../layout.ts';
import { claimLayout } from './database.ts';
import { columnSql, createIndexSql, createTableSql, tableName } from './statements.ts';

/** Raised when what exists has to change; new tables, indexes and nullable columns are simply added. */
const LAYOUT_VERSION = 1;

/** Makes what is missing. Runs in one transaction, so that several processes can start at once. */
export function prepareLayout(database: DatabaseSync, tables: Iterable<TableLayout>): void {
  claimLayout(database, 'store', LAYOUT_VERSION);
  for (const table of tables) {
    database.exec(createTableSql(table));
    prepareColumns(database, table);
    prepareIndexes(database, table);
  }
}

function prepareColumns(database: DatabaseSync, table: TableLayout): void {
  const rows = database.prepare(`SELECT name, type, "notnull", pk FROM pragma_table_info(?)`).all(`hcp_${table.name}`);
  const found = new Map(rows.map((row) => [row.name, row]));
  for (const column of table.columns) {
    const row = found.get(column.name);
    if (row === undefined && column.nullable) {
      database.exec(`ALTER TABLE ${tableName(table)} ADD COLUMN ${columnSql(column)}`);
    } else if (
      row?.type !== column.type.toUpperCase() ||
      row.notnull !== (column.nullable ? 0 : 1) ||
      row.pk !== table.key.indexOf(column) + 1
    ) {
      throw differs(`Column ${column.name} of table hcp_${table.name}`);
    }
    found.delete(column.name);
  }
  // A column of a newer program does no harm if it may be left out.
  for (const row of found.values()) {
    if (row.notnull !== 0) throw differs(`Column ${row.name} of table hcp_${table.name}`);
  }
}

function prepareIndexes(database: DatabaseSync, table: TableLayout): void {
  const select = database.prepare(`SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?`);
  for (const index of table.indexes) {
    const name = `hcp_${table.name}_${index.name}`;
    const sql = createIndexSql(table, index);
    const found = select.get(name)?.sql;
    if (found === undefined) database.exec(sql);
    else if (found !== sql) throw differs(`Index ${name}`);
  }
}

function differs(what: string): HcpError {
  return new HcpError('store_unsupported', `${what} is not as this version of the SDK makes it`);
}
