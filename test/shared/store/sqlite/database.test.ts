import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { isHcpError } from '../../../../shared/errors.ts';
import { openSqliteStore } from '../../../../shared/store/sqlite/index.ts';
import type { Store } from '../../../../shared/store/store.ts';
import { ManualClock } from '../../../../testing/manual-clock.ts';
import { disposableFolder } from '../support/disposable-folder.ts';
import { eventRow, insertSession, patchSession, sessionRow, TABLES } from '../support/scene.ts';

const folder = disposableFolder();
let path = '';
let files = 0;

beforeEach(() => {
  path = join(folder.path, `${files++}.db`);
});
afterAll(() => folder[Symbol.dispose]());

describe('the connection of an SQLite store', () => {
  it.each([
    ['FULL unless told otherwise', undefined, 2],
    ['NORMAL when that is asked for', 'NORMAL', 1],
  ] as const)('is in WAL mode, and synchronous is %s', async (_what, synchronous, code) => {
    await using store = await openSqliteStore({ path, tables: TABLES, ...(synchronous && { synchronous }) });
    const database = await nativeOf(store);
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    expect(database.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: code });
  });

  it('never sleeps on a lock inside SQLite, which would stop the whole process', async () => {
    await using store = await openSqliteStore({ path, tables: TABLES });
    expect((await nativeOf(store)).prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 0 });
  });

  it('takes the write lock when a transaction begins, not at its first write', async () => {
    await using store = await openSqliteStore({ path, tables: TABLES });
    using other = new DatabaseSync(path, { timeout: 0 });
    await store.transaction(async () => {
      expect(() => other.exec('BEGIN IMMEDIATE')).toThrow('database is locked');
    });
    other.exec('BEGIN IMMEDIATE');
    other.exec('ROLLBACK');
  });

  it.each(['', ':memory:'])('refuses the path %j', async (wrong) => {
    await expect(openSqliteStore({ path: wrong })).rejects.toThrow(TypeError);
  });
});

describe('an SQLite store that meets the lock of another connection', () => {
  const writes: readonly [string, (store: Store) => Promise<unknown>][] = [
    ['commit', (store) => store.commit([patchSession('s', 2)])],
    ['append', (store) => store.append('events', [eventRow('s', 1)])],
    ['transaction', (store) => store.transaction((tx) => tx.write([patchSession('s', 2)]))],
  ];

  it.each(writes)('waits with a free event loop until a %s can go on', async (_what, write) => {
    const clock = new ManualClock();
    await using store = await openSqliteStore({ path, tables: TABLES, clock });
    await store.commit([insertSession('s')]);
    using other = new DatabaseSync(path, { timeout: 0 });
    other.exec('BEGIN IMMEDIATE');

    let done = false;
    const writing = write(store).finally(() => {
      done = true;
    });
    // These turns of the event loop are the proof: a blocked one would not come back until the lock is gone.
    for (let turn = 0; turn < 20; turn++) {
      await nextTurn();
      clock.advance(25);
    }
    expect(done).toBe(false);
    // Readers do not wait for a writer.
    expect(await store.get('sessions', ['s'])).toEqual(sessionRow('s'));

    other.exec('COMMIT');
    await driven(clock, writing);
    expect(done).toBe(true);
  });

  it.each(writes)('gives up a %s after ten seconds, and works again later', async (_what, write) => {
    const clock = new ManualClock();
    await using store = await openSqliteStore({ path, tables: TABLES, clock });
    await store.commit([insertSession('s')]);
    const began = clock.now();
    using other = new DatabaseSync(path, { timeout: 0 });
    other.exec('BEGIN IMMEDIATE');

    const error = await driven(
      clock,
      write(store).catch((reason: unknown) => reason),
    );

    expect(isHcpError(error, 'store_unavailable') && error.retryable).toBe(true);
    expect(String((error as Error).message)).toContain('another process keeps it locked');
    expect(clock.now() - began).toBeGreaterThanOrEqual(10_000);
    other.exec('ROLLBACK');
    await write(store);
  });

  it('waits for the lock when it is opened, too', async () => {
    await (await openSqliteStore({ path, tables: TABLES })).close();
    const clock = new ManualClock();
    using other = new DatabaseSync(path, { timeout: 0 });
    other.exec('BEGIN IMMEDIATE');
    const opening = openSqliteStore({ path, tables: TABLES, clock });
    await nextTurn();
    other.exec('ROLLBACK');
    await using store = await driven(clock, opening);
    expect(await store.commit([insertSession('s')])).toBe('committed');
  });
});

async function nativeOf(store: Store): Promise<DatabaseSync> {
  const native = await store.transaction(async (tx) => tx.native);
  if (!(native instanceof DatabaseSync)) throw new TypeError('Not an SQLite store');
  return native;
}

/** Lets time pass until `promise` is settled. */
async function driven<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let settled = false;
  const watch = () => {
    settled = true;
  };
  promise.then(watch, watch);
  while (!settled) {
    await nextTurn();
    clock.advance(25);
  }
  return promise;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
