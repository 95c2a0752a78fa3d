import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isHcpError } from '../../../shared/errors.ts';
import { openStore } from '../../../shared/store/open-store.ts';
import { hcpTables } from '../../../shared/store/tables.ts';
import { ManualClock } from '../../../testing/manual-clock.ts';
import { describeWith, freshDatabase, mongodb } from '../../support/services/index.ts';
import { disposableFolder } from './support/disposable-folder.ts';
import { insertSession, sessionRow, TABLES } from './support/scene.ts';

const PASSWORD = 'hunter2';

describe('openStore', () => {
  it('opens a memory store with the tables of the SDK', async () => {
    await using store = await openStore('memory:');
    expect(store.tables).toBe(hcpTables);
  });

  it('opens a file by its path, with the tables and the clock given', async () => {
    using folder = disposableFolder();
    const path = join(folder.path, 'with space & 100%.db');
    const clock = new ManualClock();
    {
      await using store = await openStore(`sqlite:${path}`, { tables: TABLES, clock });
      await store.commit([insertSession('s')]);
      expect(await store.now()).toBe(clock.now());
    }
    expect(existsSync(path)).toBe(true);
    await using again = await openStore(`sqlite:${path}`, { tables: TABLES });
    expect(await again.get('sessions', ['s'])).toEqual(sessionRow('s'));
  });

  it.each([
    '',
    'hcp.db',
    './hcp.db',
    'memory',
    'sqlite:',
    'SQLITE:./hcp.db',
    `postgres://user:${PASSWORD}@127.0.0.1/hcp`,
    `mongodb//user:${PASSWORD}@127.0.0.1`,
    `mongodb://user:${PASSWORD}@127.0.0.1/?no=such&option`,
    `mongodb://user:${PASSWORD}@db.example.com/`,
    `mongodb+srv://user:${PASSWORD}@db.example.com/?tls=false`,
  ])('refuses the URL of case %# before any I/O, without its password', async (url) => {
    const error = await openStore(url).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(inspectable(error)).not.toContain(PASSWORD);
  });
});

describeWith('openStore with a mongodb: URL', mongodb(), (server) => {
  it('opens the database that the URL names', async () => {
    await using database = freshDatabase(server);
    {
      await using store = await openStore(database.url, { tables: TABLES });
      await store.commit([insertSession('s')]);
    }
    await using again = await openStore(database.url, { tables: TABLES });
    expect(await again.get('sessions', ['s'])).toEqual(sessionRow('s'));
  });

  it('keeps the password of a refused login out of the error', async () => {
    const url = server.url.replace('://', `://user:${PASSWORD}@`);
    const error = await openStore(url).catch((reason: unknown) => reason);
    expect(isHcpError(error, 'store_unsupported'), String(error)).toBe(true);
    expect(inspectable(error)).not.toContain(PASSWORD);
  });
});

/** Everything a careless program might print. */
function inspectable(error: unknown): string {
  const { message, stack, cause } = error as Error;
  return [message, stack, JSON.stringify(cause), String(cause)].join('\n');
}
