import { existsSync } from 'node:fs';
import type { SessionRecord } from '../session/record.ts';
import { recordOf } from '../session/record.ts';
import { HcpError } from '../shared/errors.ts';
import type { Store } from '../shared/store/store.ts';
import { FileError } from './files.ts';
import type { Workplace } from './workplace.ts';

/** The store, which must be there: whoever only looks must not make a new file where there is none. */
export function storeToRead(workplace: Workplace): Promise<Store> {
  const [, path] = /^sqlite:(.+)$/s.exec(workplace.storeUrl) ?? [];
  if (path !== undefined && !existsSync(path)) {
    throw new FileError(`There is no file ${path}: hcp dev makes one, --db names another`);
  }
  return workplace.store();
}

/** A session of the callee that is worked with. Rejects with `session_unknown`. */
export async function findSession(store: Store, calleeId: string, sessionId: string): Promise<SessionRecord> {
  const row = await store.get('sessions', [sessionId]);
  if (row?.callee_id !== calleeId) {
    throw new HcpError('session_unknown', `Callee ${calleeId} has no session ${sessionId}`);
  }
  return recordOf(row);
}
