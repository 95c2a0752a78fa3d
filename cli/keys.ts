import type { JWK } from 'jose';
import { createKeyRing, type KeyRing } from '../session/keys/key-ring.ts';
import { openStoredKeyRing } from '../session/keys/stored-keys.ts';
import { systemClock } from '../shared/clock.ts';
import { textOf } from './arguments.ts';
import type { Call } from './command.ts';
import { FileError, readJson } from './files.ts';
import { storeToRead } from './stored.ts';
import { UsageError } from './usage-error.ts';

export const KEY_OPTION = {
  type: 'string',
  value: 'FILE',
  about: "a JWK or JWKS instead of the store's keys",
} as const;

/** The keys in the file that `--key` names, else those the callee keeps in its store. */
export async function keysFor(call: Call): Promise<KeyRing> {
  const path = textOf(call.values, 'key');
  return path === undefined ? storedKeys(call) : keysIn(path, call);
}

async function keysIn(path: string, { io }: Call): Promise<KeyRing> {
  const content = await readJson(path, io);
  const { keys } = Object(content) as { readonly keys?: unknown };
  try {
    // Each key is checked as it is read, whatever it is.
    return await createKeyRing((Array.isArray(keys) ? keys : [content]) as readonly JWK[]);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new FileError(`Cannot use ${path}: ${error.message}`, { cause: error });
  }
}

async function storedKeys({ workplace }: Call): Promise<KeyRing> {
  const store = await storeToRead(workplace);
  const { calleeId } = workplace;
  // A ring makes its first key, and what that seals nobody would believe.
  const [row] = await store.scan('keys', 'by_age', { where: [calleeId], limit: 1 });
  if (row === undefined) throw new UsageError(`Callee ${calleeId} keeps no keys in this store: give them with --key`);
  return openStoredKeyRing(store, calleeId, { clock: systemClock });
}
