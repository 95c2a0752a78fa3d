import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { isHcpError } from '../../../../shared/errors.ts';
import { readRange, tableOf } from '../../../../shared/store/checks.ts';
import { layoutsOf } from '../../../../shared/store/layout.ts';
import { openSqliteStore } from '../../../../shared/store/sqlite/index.ts';
import { scanSql } from '../../../../shared/store/sqlite/statements.ts';
import type { Tables } from '../../../../shared/store/tables.ts';
import { disposableFolder } from '../support/disposable-folder.ts';
import { eventRow, insertSession, sessionRow, TABLES } from '../support/scene.ts';

const folder = disposableFolder();
let path = '';
let files = 0;

beforeEach(() => {
  path = join(folder.path, `${files++}.db`);
});
afterAll(() => folder[Symbol.dispose]());

const open = (tables: Tables = TABLES) => openSqliteStore({ path, tables });

async function isRefused(tables?: Tables): Promise<string> {
  const error = await open(tables).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(isHcpError(error, 'store_unsupported'), String(error)).toBe(true);
  return String((error as Error).message);
}

describe('a file that an SQLite store cannot use', () => {
  it('is refused when it is something else, and left as it is', async () => {
    const letter = `Dear Alice, ${'x'.repeat(5_000)}`;
    writeFileSync(path, letter);
    expect(await isRefused()).toContain('is not an SQLite database');
    expect(readFileSync(path, 'utf8')).toBe(letter);
  });

  it('is refused when its pages are damaged', async () => {
    await using store = await open();
    await store.append(
      'events',
      Array.from({ length: 200 }, (_, i) => eventRow('s', i, 'x'.repeat(500))),
    );
    await store.close();
    const bytes = readFileSync(path);
    bytes.fill(0xee, 100, 8_192);
    writeFileSync(path, bytes);
    expect(await isRefused()).toContain('damaged');
  });

  it('is refused when it is a folder, or lies in none', async () => {
    mkdirSync(path);
    expect(await isRefused()).toContain('it is a folder');
    path = join(folder.path, 'nowhere', 'hcp.db');
    expect(await isRefused()).toContain('its folder is missing');
  });

  it('is refused when a newer version made it, and left as it is', async () => {
    await (await open()).close();
    using database = new DatabaseSync(path);
    database.exec(`UPDATE hcp__layout SET version = 99 WHERE part = 'store'`);
    expect(await isRefused()).toContain('layout 99');
    expect(database.prepare('SELECT part, version FROM hcp__layout').all()).toEqual([{ part: 'store', version: 99 }]);
  });

  it('is refused when a table or an index in it is another one', async () => {
    await (await open()).close();
    const { sessions } = TABLES;
    const { owner: _, ...without } = sessions.columns;
    const others: readonly [Tables, string][] = [
      [{ sessions: { ...sessions, columns: { ...sessions.columns, version: 'text' } } }, 'Column version'],
      [{ sessions: { ...sessions, columns: { ...sessions.columns, owner: 'text' } } }, 'Column owner'],
      [{ sessions: { ...sessions, columns: { ...sessions.columns, added: 'text' } } }, 'Column added'],
      [{ sessions: { ...sessions, key: ['id', 'version'] } }, 'Column version'],
      [{ sessions: { ...sessions, columns: { id: 'text', owner: 'text?' }, indexes: {} } }, 'Column version'],
      [{ sessions: { ...sessions, indexes: { by_owner: { columns: ['owner'] } } } }, 'Index hcp_sessions_by_owner'],
    ];
    for (const [tables, named] of others) expect(await isRefused(tables)).toContain(named);
    // A column that may be left out does no harm.
    await (await open({ sessions: { ...sessions, columns: without, indexes: {} } })).close();
  });
});

describe('the file of an SQLite store', () => {
  it('gains new tables, indexes and nullable columns', async () => {
    const { sessions } = TABLES;
    const older = await open({ sessions: { ...sessions, indexes: {} } });
    await older.commit([insertSession('s', { owner: 'me' })]);
    await older.close();

    const columns = { ...sessions.columns, note: 'text?' } as const;
    await using newer = await open({ ...TABLES, sessions: { ...sessions, columns } });

    const rows = await newer.scan('sessions', 'by_owner', { where: ['me'] });
    expect(rows).toEqual([{ ...sessionRow('s', { owner: 'me' }), note: null }]);
    expect(await newer.append('events', [eventRow('s', 1)])).toBe('appended');
  });

  it("is shared with the program's own tables, which commit and roll back with the store's", async () => {
    using database = new DatabaseSync(path);
    database.exec('CREATE TABLE ledger (entry TEXT)');
    database.exec(`INSERT INTO ledger VALUES ('old')`);
    await using store = await open();
    const record = (entry: string, fails: boolean) =>
      store.transaction(async (tx) => {
        // What `native` is on this engine.
        (tx.native as DatabaseSync).prepare('INSERT INTO ledger VALUES (?)').run(entry);
        await tx.write([insertSession(entry)]);
        if (fails) throw new Error('on purpose');
      });

    await record('kept', false);
    await expect(record('rolled back', true)).rejects.toThrow('on purpose');

    expect(database.prepare('SELECT entry FROM ledger').all()).toEqual([{ entry: 'old' }, { entry: 'kept' }]);
    expect((await store.scan('sessions', 'key')).map((row) => row.id)).toEqual(['kept']);
  });

  it('searches the index of a scan, and sorts nothing', async () => {
    await (await open()).close();
    const table = tableOf(layoutsOf(TABLES), 'sessions');
    const stretch = readRange(table, 'by_owner', {
      where: ['me'],
      after: sessionRow('s', { owner: 'me' }),
      order: 'descending',
    });
    if (stretch === undefined) throw new Error('The range is empty');
    const [sql, values] = scanSql(stretch);
    using database = new DatabaseSync(path);
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
    expect(plan.map((step) => step.detail)).toEqual([
      'SEARCH hcp_sessions USING COVERING INDEX hcp_sessions_by_owner (owner=? AND (version,id)<(?,?))',
    ]);
  });
});
