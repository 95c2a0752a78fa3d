import type { EventMessage } from '../schemas/types.ts';
import { HcpError } from '../shared/errors.ts';
import type { Store } from '../shared/store/store.ts';
import type { EventHandler } from './applier.ts';

/** An event whose handler failed as often as it may. */
export interface ParkedEvent {
  readonly sessionId: string;
  readonly sequence: number;
  /** What the handler said. */
  readonly reason: string;
  readonly parkedAt: number;
  readonly event: EventMessage;
}

/** The oldest events that could not be processed. */
export async function listParked(store: Store, callerId: string, limit: number): Promise<ParkedEvent[]> {
  const rows = await store.scan('parked', 'by_kind', { where: [callerId, 'failed'], limit });
  return rows.map((row) => ({
    sessionId: String(row.session_id),
    sequence: Number(row.sequence),
    reason: String(row.reason),
    parkedAt: Number(row.parked_at),
    event: JSON.parse(String(row.body)),
  }));
}

/** Gives a parked event to the handler again; it is gone if that succeeds, in the same transaction. */
export async function retryParked(
  store: Store,
  handler: EventHandler,
  [callerId, sessionId, sequence]: readonly [string, string, number],
): Promise<void> {
  const key = [callerId, sessionId, sequence];
  await store.transaction(async (tx) => {
    const row = await tx.get('parked', key);
    if (row?.kind !== 'failed') {
      throw new HcpError('store_conflict', `Event ${sequence} of session ${sessionId} is not parked`, {
        reason: 'missing',
      });
    }
    await handler(JSON.parse(String(row.body)), tx);
    await tx.write([{ delete: 'parked', key, if: { kind: 'failed' } }]);
  });
}
