import { logDeletes } from '../session/log.ts';
import { recordOf, type SessionRecord } from '../session/record.ts';
import type { Store, Write } from '../shared/store/store.ts';

/** Removes everything about sessions that ended before `endedBefore`, whole sessions only. Answers how many. */
export async function purgeSessions(
  store: Store,
  calleeId: string,
  endedBefore: number,
  onPurged: (sessionId: string) => void,
): Promise<number> {
  let purged = 0;
  for (;;) {
    const rows = await store.scan('sessions', 'by_closed', { where: [calleeId], to: endedBefore });
    for (const row of rows) {
      const record = recordOf(row);
      onPurged(record.sessionId);
      await purge(store, record);
      purged++;
    }
    if (rows.length === 0) return purged;
  }
}

/** The record goes last: a crash in between leaves something to find. */
async function purge(store: Store, { sessionId, calleeId, callerId, messageId }: SessionRecord): Promise<void> {
  for await (const deletes of logDeletes(store, sessionId)) await store.commit(deletes);
  await store.commit([
    ...(await deletesOf(store, 'checkpoints', 'checkpoint_id', sessionId)),
    ...(await deletesOf(store, 'commands', 'message_id', sessionId)),
    { delete: 'approvals', key: [sessionId] },
    { delete: 'answers', key: [calleeId, callerId, messageId] },
    { delete: 'sessions', key: [sessionId] },
  ]);
}

async function deletesOf(store: Store, table: string, column: string, sessionId: string): Promise<Write[]> {
  const rows = await store.scan(table, 'key', { where: [sessionId], limit: 1000 });
  return rows.map((row) => ({ delete: table, key: [sessionId, String(row[column])] }));
}
