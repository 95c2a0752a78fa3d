import type { Artifact, TaskCompletedPayload, TaskFailedPayload } from '../../schemas/types.ts';
import { type LogEntry, readLog, readTail } from '../../session/log.ts';
import { recordOf } from '../../session/record.ts';
import type { Store } from '../../shared/store/store.ts';
import { type ArtifactAddress, parseArtifactUri } from './uri.ts';

/** An artifact as the result of its session lists it, if that session is the caller's and the address is in the list. */
export async function listedArtifact(
  store: Store,
  callerId: string,
  address: ArtifactAddress,
): Promise<Artifact | undefined> {
  const { calleeId, sessionId, name } = address;
  const row = await store.get('sessions', [sessionId]);
  const record = row && recordOf(row);
  if (record?.calleeId !== calleeId || record.callerId !== callerId) return undefined;
  // Without a result its whole log would be searched.
  if (record.state !== 'COMPLETED' && record.state !== 'FAILED') return undefined;
  const result = await readResult(store, sessionId);
  return result?.artifacts?.find(({ uri }) => {
    const listed = parseArtifactUri(uri);
    return listed?.calleeId === calleeId && listed.sessionId === sessionId && listed.name === name;
  });
}

const STEP = 16;

/** From the end: behind the result stand the last events, and a takeover for each time it had to be published again. */
async function readResult(
  store: Store,
  sessionId: string,
): Promise<TaskCompletedPayload | TaskFailedPayload | undefined> {
  const { position } = await readTail(store, sessionId);
  for (let last = position; last > 0; last -= STEP) {
    for await (const entry of readLog(store, sessionId, Math.max(1, last - STEP + 1), STEP)) {
      if (isResult(entry)) return JSON.parse(entry.body.toString()).payload;
      if (entry.position >= last) break;
    }
  }
  return undefined;
}

function isResult(entry: LogEntry): entry is LogEntry & { readonly body: Buffer } {
  return (entry.kind === 'task_completed' || entry.kind === 'task_failed') && entry.body !== undefined;
}
