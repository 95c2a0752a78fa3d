import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { connectSqlite } from '../../shared/transport/sqlite/index.ts';
import type { Heal } from '../../testing/transport-contract/index.ts';
import type { TransportFixture } from './transport-fixture.ts';

/** A locked file is noticed after this. */
const PATIENCE_MS = 200;
const SLOW_MS = 10;

export function sqliteFixture(): TransportFixture {
  return {
    adapter: 'sqlite',
    async start() {
      const folder = mkdtempSync(join(tmpdir(), 'hcp-queues-'));
      const path = join(folder, 'hcp.db');
      return {
        adapter: 'sqlite',
        open: ({ login = 'contract', ...options } = {}) =>
          connectSqlite({ path, login, pollMs: 2, patienceMs: PATIENCE_MS, ...options }),
        otherLogin: 'other',
        faults: {
          cutLinks: async () => operate(path, cut),
          freezeLinks: async () => lock(path),
          slowLinks: async () => stutter(path),
          // A broker that lives in a file is stopped when nobody may use the file; whoever had a link has lost it.
          stopBroker: async () => lock(path, cut),
          deleteQueue: async (name) => operate(path, (database) => erase(database, name)),
        },
        async [Symbol.asyncDispose]() {
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
  };
}

/** As if every lease had run out and been swept. */
function cut(database: DatabaseSync): void {
  database.exec(`UPDATE hcp__message SET holder = NULL, attempts = attempts + 1 WHERE holder IS NOT NULL;
    DELETE FROM hcp__consumer; DELETE FROM hcp__connection`);
}

function erase(database: DatabaseSync, queue: string): void {
  for (const table of ['message', 'consumer', 'binding']) {
    database.prepare(`DELETE FROM hcp__${table} WHERE queue = ?`).run(queue);
  }
  database.prepare('DELETE FROM hcp__queue WHERE name = ?').run(queue);
}

/** Behind the broker's back: by a connection of our own. */
function operate(path: string, work: (database: DatabaseSync) => void): void {
  const database = new DatabaseSync(path, { timeout: 10_000 });
  database.exec('BEGIN IMMEDIATE');
  work(database);
  database.exec('COMMIT');
  database.close();
}

function lock(path: string, work: (database: DatabaseSync) => void = () => {}): Heal {
  const database = new DatabaseSync(path, { timeout: 10_000 });
  database.exec('BEGIN IMMEDIATE');
  work(database);
  return async () => {
    database.exec('COMMIT');
    database.close();
  };
}

/** Locks the file again and again for a moment. */
function stutter(path: string): Heal {
  const database = new DatabaseSync(path, { timeout: 10_000 });
  let timer = setTimeout(hold, 0);
  function hold(): void {
    database.exec('BEGIN IMMEDIATE');
    timer = setTimeout(() => {
      database.exec('COMMIT');
      timer = setTimeout(hold, 1);
    }, SLOW_MS);
  }
  return async () => {
    clearTimeout(timer);
    if (database.isTransaction) database.exec('ROLLBACK');
    database.close();
  };
}
