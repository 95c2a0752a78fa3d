import { DatabaseSync } from 'node:sqlite';
import { type Clock, delay, systemClock } from '../../clock.ts';
import { HcpError } from '../../errors.ts';

/** How hard a commit is pressed onto the disk: `FULL` survives a power cut, `NORMAL` may lose the last commits then. */
export type Synchronous = 'FULL' | 'NORMAL';

export interface DatabaseOptions {
  /** @default 'FULL' */
  readonly synchronous?: Synchronous;
  /** Drives the waits for a lock. @default systemClock */
  readonly clock?: Clock;
}

/** How long a lock held by another connection is waited for before its SQLITE_BUSY comes through. */
export const BUSY_PATIENCE_MS = 10_000;
const LONGEST_PAUSE_MS = 25;

/**
 * Opens (or makes) a database file in WAL mode. It never waits for a lock by itself: SQLite's own busy timeout sleeps
 * on the event loop's thread, so each use goes through {@link withBusyRetry}.
 * Rejects with `store_unsupported` when there can be no database at `path`, with `store_unavailable` when there is one
 * that stays locked or cannot be read.
 */
export async function openDatabase(path: string, options: DatabaseOptions = {}): Promise<DatabaseSync> {
  const { synchronous = 'FULL', clock = systemClock } = options;
  let database: DatabaseSync | undefined;
  try {
    const opened = new DatabaseSync(path, { timeout: 0, enableForeignKeyConstraints: true });
    database = opened;
    // Turning WAL on is itself a write, and several processes may meet here.
    await withBusyRetry(clock, () => opened.exec('PRAGMA journal_mode = WAL'));
    opened.exec(`PRAGMA synchronous = ${synchronous}`);
    return opened;
  } catch (error) {
    database?.close();
    throw toStoreError(error, `Cannot open ${path}`);
  }
}

/**
 * Runs `attempt` (synchronous; it leaves no transaction open when it throws) until no other connection's lock is in
 * its way, with growing random pauses in which the event loop is free. After `patienceMs` of pauses the SQLITE_BUSY
 * comes through as it is: see {@link isBusy} and {@link toStoreError}.
 */
export async function withBusyRetry<T>(clock: Clock, attempt: () => T, patienceMs = BUSY_PATIENCE_MS): Promise<T> {
  let pausedMs = 0;
  for (let longestMs = 1; ; longestMs = Math.min(longestMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || pausedMs >= patienceMs) throw error;
    }
    const pauseMs = Math.random() * longestMs;
    pausedMs += pauseMs;
    await delay(clock, pauseMs);
  }
}

/**
 * Runs `work` (synchronous) in one write transaction. Always IMMEDIATE: a deferred one that turns into a writer fails
 * at once when another connection wrote meanwhile, whatever the busy timeout.
 */
export function immediately<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    commit(database);
    return result;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

/**
 * Ends the open transaction. Throws `store_outcome_unknown` when the disk failed: what it wrote before that may be
 * found complete after a restart.
 */
export function commit(database: DatabaseSync): void {
  try {
    database.exec('COMMIT');
  } catch (error) {
    if (sqliteCode(error) !== SQLITE_IOERR) throw error;
    throw new HcpError('store_outcome_unknown', 'The disk failed while a transaction was committed', { cause: error });
  }
}

/** Undoes the open transaction, if SQLite has not done so itself: some errors end it. */
export function rollBack(database: DatabaseSync): void {
  try {
    database.exec('ROLLBACK');
  } catch (error) {
    // "No transaction is active". Node 22.13 cannot be asked beforehand.
    if (sqliteCode(error) !== SQLITE_ERROR) throw error;
  }
}

/**
 * Declares which layout version `part` ("store", "transport") of this file has. Call it inside the transaction that
 * makes the tables. Throws `store_unsupported` when a newer program has been here. Answers the version found, or
 * `undefined` when `part` is new.
 */
export function claimLayout(database: DatabaseSync, part: string, version: number): number | undefined {
  database.exec('CREATE TABLE IF NOT EXISTS hcp__layout (part TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT');
  const row = database.prepare('SELECT version FROM hcp__layout WHERE part = ?').get(part);
  const found = row === undefined ? undefined : Number(row.version);
  if (found !== undefined && found > version) {
    throw new HcpError(
      'store_unsupported',
      `The ${part} in this database has layout ${found}, and this version of the SDK knows ${version} at most`,
    );
  }
  if (found !== version) {
    database.prepare('INSERT OR REPLACE INTO hcp__layout (part, version) VALUES (?, ?)').run(part, version);
  }
  return found;
}

const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

/** The primary result code of an error thrown by `node:sqlite`, else `undefined`. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}

/** Whether another connection's lock is what stands in the way. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

/** The {@link HcpError} for what `node:sqlite` threw; an `HcpError` stays as it is. */
export function toStoreError(error: unknown, what = 'The database failed'): unknown {
  const code = sqliteCode(error);
  if (code === undefined || !(error instanceof Error)) return error;
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) {
    return new HcpError('store_unsupported', `${what}: the file is damaged or is not an SQLite database`, {
      cause: error,
    });
  }
  if (code === SQLITE_CANTOPEN) {
    return new HcpError('store_unsupported', `${what}: it is a folder, or its folder is missing or not writable`, {
      cause: error,
    });
  }
  const why = isBusy(error) ? 'another process keeps it locked' : error.message;
  return new HcpError('store_unavailable', `${what}: ${why}`, { cause: error });
}
