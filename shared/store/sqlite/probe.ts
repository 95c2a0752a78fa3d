import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isBusy, toStoreError } from './database.ts';

const PATIENCE_MS = 2_000;

/** What can be told of a database file without changing it. */
export type SqliteFacts =
  | { readonly state: 'absent' }
  /** It cannot be read or written, or there is no place to put it. */
  | { readonly state: 'inaccessible'; readonly why: string }
  /** Another process kept it for as long as we waited. */
  | { readonly state: 'locked'; readonly why: string }
  | { readonly state: 'damaged'; readonly why: string }
  | {
      readonly state: 'sound';
      readonly bytes: number;
      /** `wal`, unless no program of ours has been here. */
      readonly journalMode: string;
    };

/** Looks at the database file, which need not exist. */
export async function probeSqlite(path: string): Promise<SqliteFacts> {
  const folder = dirname(path);
  // SQLite keeps two more files beside the database.
  if (!(await may(folder, constants.W_OK))) {
    return { state: 'inaccessible', why: `The folder ${folder} is missing or not writable` };
  }
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return { state: 'absent' };
  if (!found.isFile()) return { state: 'inaccessible', why: `${path} is not a file` };
  if (!(await may(path, constants.R_OK | constants.W_OK))) {
    return { state: 'inaccessible', why: `${path} is not readable and writable` };
  }
  return inspect(path, found.size);
}

function inspect(path: string, bytes: number): SqliteFacts {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: PATIENCE_MS });
    const [first] = database.prepare('PRAGMA integrity_check(1)').all();
    if (first?.integrity_check !== 'ok') return { state: 'damaged', why: String(first?.integrity_check) };
    database.exec('BEGIN IMMEDIATE');
    database.exec('ROLLBACK');
    const journalMode = String(database.prepare('PRAGMA journal_mode').get()?.journal_mode);
    return { state: 'sound', bytes, journalMode };
  } catch (error) {
    const told = toStoreError(error, path);
    const why = told instanceof Error ? told.message : String(told);
    return { state: isBusy(error) ? 'locked' : 'damaged', why };
  } finally {
    database?.close();
  }
}

async function may(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
