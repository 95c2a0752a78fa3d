import { readFile, writeFile } from 'node:fs/promises';
import type { Io } from './command.ts';

/** A file that cannot be read or written, told in one sentence. */
export class FileError extends Error {
  override readonly name = 'FileError';
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'it may not be accessed',
  EPERM: 'it may not be accessed',
  EISDIR: 'it is a folder',
  ENOTDIR: 'what should be a folder is a file',
  EEXIST: 'it exists already',
  EROFS: 'the disk can only be read',
  ENOSPC: 'the disk is full',
};

/** The bytes of a file; of stdin for `-`. */
export async function readInput(path: string, io: Pick<Io, 'read'>): Promise<Uint8Array> {
  return path === '-' ? io.read() : reaching(`Cannot read ${path}`, () => readFile(path));
}

export function writeOutput(path: string, content: string): Promise<void> {
  return reaching(`Cannot write ${path}`, () => writeFile(path, content));
}

/** The value in a JSON file. What it could not parse is not quoted: it may be a key. */
export async function readJson(path: string, io: Pick<Io, 'read'>): Promise<unknown> {
  const bytes = await readInput(path, io);
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    throw new FileError(`Cannot read ${path}: it is no JSON`);
  }
}

/** Does something with a file; what the system says against it becomes a {@link FileError}. */
export async function reaching<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    throw new FileError(`${what}: ${REASONS[code] ?? code}`, { cause: error });
  }
}

function systemCode(error: unknown): string | undefined {
  const isSystems = error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string';
  return isSystems ? String(error.code) : undefined;
}
