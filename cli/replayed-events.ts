import { randomInt } from 'node:crypto';
import type { Follow } from '../caller/follow.ts';
import { openEventChannel, type ReceivedEvent } from '../caller/index.ts';
import type { EventMessage } from '../schemas/types.ts';
import { systemClock } from '../shared/clock.ts';
import { HcpError } from '../shared/errors.ts';
import { newUlid } from '../shared/ids.ts';
import { buildMessage } from '../shared/messages/build.ts';
import { Resources } from '../shared/resources.ts';
import { type QueueDeclaration, sessionQueue } from '../shared/transport/topology.ts';
import type { Transport } from '../shared/transport/transport.ts';

export interface ReplayRequest {
  readonly transport: Transport;
  readonly follow: Follow;
  readonly from: number;
  readonly to: number;
  readonly signal: AbortSignal;
}

/** How long the callee may be silent. */
const PATIENCE_MS = 10_000;

/**
 * Asks a callee for events again and answers with those it has, in order. They come into a queue that is made for it: the
 * caller's own gets them too, and whoever reads it passes them over (HCP-207).
 */
export async function replayedEvents(request: ReplayRequest): Promise<EventMessage[]> {
  const { transport, follow } = request;
  const queue = ownQueue(follow);
  await using cleaning = new Resources();
  cleaning.defer(() => transport.remove(queue));
  const events = new Map<number, EventMessage>();
  await collect(request, queue, events, cleaning);
  return [...events.values()].sort((a, b) => a.payload.sequence - b.payload.sequence);
}

async function collect(
  { transport, follow, from, to, signal }: ReplayRequest,
  queue: QueueDeclaration,
  events: Map<number, EventMessage>,
  cleaning: Resources,
): Promise<void> {
  const { callerId, calleeId, sessionId, accepted } = follow;
  const channel = openEventChannel({ callerId, transport });
  const { promise: whole, resolve, reject } = Promise.withResolvers<void>();
  whole.catch(() => {}); // it may fail before it is waited for
  // Further than any stream goes, and nobody else's: the answer that names it is to us, and says where the stream ends.
  const beyond = 2 ** 52 + randomInt(2 ** 47);
  const ask = async (next: number): Promise<void> => {
    const { session_token } = accepted.payload;
    const payload = { from_sequence: next, to_sequence: beyond, session_token };
    const built = buildMessage({ type: 'x-replay', sessionId, senderId: callerId, payload });
    if ((await channel.publish(calleeId, built, { signal })) === 'confirmed') return;
    throw new HcpError('callee_unreachable', `There is no callee ${calleeId}`);
  };
  const silent = () => reject(new HcpError('callee_unreachable', `Callee ${calleeId} does not answer`));
  const timer = setTimeout(silent, PATIENCE_MS);
  const stop = () => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  cleaning.defer(() => {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  });
  const hear = async ({ message }: ReceivedEvent): Promise<void> => {
    if (message.type !== 'event') return;
    timer.refresh();
    const { sequence, event_type: type, data } = message.payload;
    if (type === 'x-replay-unavailable' && data.to_sequence === beyond) {
      if (data.reason === 'limit') await ask(Number(data.from_sequence)).catch(reject);
      else resolve();
      return;
    }
    if (sequence >= from && sequence <= to) events.set(sequence, message);
    if (events.size > to - from) resolve();
  };
  cleaning.use(await channel.consume(hear, queue));
  signal.throwIfAborted();
  await Promise.all([whole, ask(from)]);
}

/** Without dead letters: what is in it is worth nothing to anybody else. */
function ownQueue({ callerId, sessionId }: Follow): QueueDeclaration {
  return {
    ...sessionQueue(callerId, sessionId, { profile: 'spec' }),
    name: `hcp.evt.${callerId}.replay-${newUlid(systemClock.now())}`,
  };
}
