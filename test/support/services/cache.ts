import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { poll } from './processes.ts';

/** What later runs use again: outside the repository, shared by all checkouts of this user. */
export function cacheFolder(): string {
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hcp-sdk');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Does `work` while no other process of this user does work of the same name. */
export async function withLock<T>(name: string, work: () => Promise<T>): Promise<T> {
  const lock = join(cacheFolder(), `${name}.lock`);
  await poll(() => acquire(lock), { timeoutMs: 600_000, what: `the lock ${lock}` });
  try {
    return await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function acquire(lock: string): boolean {
  // Made elsewhere and moved here whole, which fails while there is one: a lock never lacks the name of its owner.
  const mine = mkdtempSync(`${lock}.`);
  try {
    writeFileSync(join(mine, 'pid'), String(process.pid));
    renameSync(mine, lock);
    return true;
  } catch {
    rmSync(mine, { recursive: true, force: true });
    if (isAbandoned(lock)) discard(lock);
    return false;
  }
}

function isAbandoned(lock: string): boolean {
  try {
    process.kill(Number(readFileSync(join(lock, 'pid'), 'utf8')), 0);
    return false;
  } catch (error) {
    // A lock that is gone by now has not been abandoned.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}

function discard(lock: string): void {
  // Renaming first lets only one of several waiters remove it: the others could delete the lock of the next owner.
  const grave = `${lock}.${process.pid}.${Date.now()}`;
  try {
    renameSync(lock, grave);
    rmSync(grave, { recursive: true, force: true });
  } catch {
    // another waiter was first
  }
}
