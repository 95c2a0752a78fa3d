import { context } from '@opentelemetry/api';
import type { XReplayPayload, XReplayUnavailableData } from '../schemas/types.ts';
import { type LogEntry, readEvents, readTail } from '../session/log.ts';
import type { SessionRecord } from '../session/record.ts';
import { restoreMessage } from '../shared/messages/build.ts';
import { traceContext } from '../shared/telemetry.ts';
import type { CommandChannel } from './command-channel.ts';
import type { Host } from './host.ts';

/** A request must not keep a callee busy for long, nor flood its caller. */
const MOST_EVENTS = 1000;
const AT_ONCE = 128;

/**
 * Publishes events of a session again, as they are in its log, byte for byte. Whoever owns the session: the log is only
 * read. Answers the parts of the range that were not published, and why; rejects when the broker took too little of it.
 */
export async function replay(
  { host, channel }: { readonly host: Host; readonly channel: CommandChannel },
  record: SessionRecord,
  range: XReplayPayload,
): Promise<readonly XReplayUnavailableData[]> {
  // Before the events: whatever is up to here can be read.
  const { sequence: last } = await readTail(host.store, record.sessionId);
  const plan = planReplay(range, last);
  const unavailable: XReplayUnavailableData[] = [];
  let next = plan.from;
  const missUpTo = (end: number) => {
    if (end >= next) unavailable.push({ from_sequence: next, to_sequence: end, reason: 'not_held' });
  };
  for await (const events of inChunks(readEvents(host.store, record.sessionId, plan.from, plan.to))) {
    for (const { sequence } of events) {
      missUpTo(sequence - 1);
      next = sequence + 1;
    }
    // Without a queue there is nobody to answer either.
    if (!(await publish(channel, record, events))) return [];
  }
  missUpTo(plan.to);
  return [...unavailable, ...plan.beyond];
}

/** What of a range can be in the log, and what is to be said of the rest. */
export function planReplay(
  { from_sequence, to_sequence }: XReplayPayload,
  last: number,
): { readonly from: number; readonly to: number; readonly beyond: readonly XReplayUnavailableData[] } {
  // No stream of ours has a 0, but a caller that has seen nothing may count from there.
  const from = to_sequence > 0 ? Math.max(1, from_sequence) : 0;
  const held = Math.min(to_sequence, last);
  const to = Math.min(held, from + MOST_EVENTS - 1);
  const beyond = (first: number, reason: string) => [{ from_sequence: first, to_sequence, reason }];
  if (to_sequence === 0) return { from: 1, to: 0, beyond: beyond(0, 'not_said') };
  if (to < held) return { from, to, beyond: beyond(to + 1, 'limit') };
  return { from, to, beyond: to_sequence > last ? beyond(Math.max(from, last + 1), 'not_said') : [] };
}

async function* inChunks<T>(events: AsyncIterable<T>): AsyncIterable<readonly T[]> {
  let chunk: T[] = [];
  for await (const event of events) {
    chunk.push(event);
    if (chunk.length < AT_ONCE) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

/** In order, pipelined. Answers whether the caller has a queue. */
async function publish(
  channel: CommandChannel,
  { calleeId, callerId, trace }: SessionRecord,
  events: readonly LogEntry[],
): Promise<boolean> {
  const bodies = events.flatMap(({ body }) => (body ? [body] : []));
  const outcomes = await context.with(traceContext(JSON.parse(trace)), () =>
    Promise.all(bodies.map((body) => channel.publish(callerId, restoreMessage(body, calleeId)))),
  );
  return !outcomes.includes('unroutable');
}
