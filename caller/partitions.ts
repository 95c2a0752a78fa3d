import { type Clock, delay } from '../shared/clock.ts';
import { isHcpError } from '../shared/errors.ts';
import type { Logger } from '../shared/logger.ts';
import { eventQueue, partitionQueue, type QueueDeclaration, type QueueOptions } from '../shared/transport/topology.ts';
import type { Consumer, Transport } from '../shared/transport/transport.ts';

/** How the events of a caller are spread over queues; each session stays in one. */
export interface Partitions {
  /** How many queues there are. The same number in every process of the caller. */
  readonly count: number;
  /** Which of them this process consumes, from 0. @default all */
  readonly consume?: readonly number[];
}

/** A queue that was given up is looked at this long after its last message. */
const QUIET_MS = 1000;

/** The queues this process consumes. Throws `TypeError` for a partition that does not exist. */
export function queuesOf(
  callerId: string,
  partitions: Partitions | undefined,
  options: QueueOptions,
): QueueDeclaration[] {
  if (partitions === undefined) return [eventQueue(callerId, options)];
  if (typeof partitions !== 'object' || partitions === null) throw new TypeError('partitions must be an object');
  const { count } = partitions;
  if (!Number.isInteger(count) || count < 1 || count > 256) {
    throw new TypeError('partitions.count must be an integer from 1 to 256');
  }
  const { consume = Array.from({ length: count }, (_, index) => index) } = partitions;
  if (!Array.isArray(consume)) throw new TypeError('partitions.consume must be an array of numbers');
  for (const index of consume) {
    if (!Number.isInteger(index) || index < 0 || index >= count) {
      throw new TypeError(`partitions.consume names ${index}, but there are 0 to ${count - 1}`);
    }
  }
  return consume.map((index) => partitionQueue(callerId, index, options));
}

export interface MoveParts {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Consumes one queue as the others are consumed; tells of each message. */
  readonly consume: (queue: QueueDeclaration, heard: () => void) => Promise<Consumer>;
}

/** Empties and removes the queues of another arrangement: events go to both for a moment, and the cursor drops the copies. */
export async function leaveFormerQueues(
  parts: MoveParts,
  callerId: string,
  partitions: Partitions | undefined,
  options: QueueOptions,
): Promise<void> {
  try {
    if (partitions !== undefined) await leave(parts, eventQueue(callerId, options));
    for (let index = partitions?.count ?? 0; ; index++) {
      if ((await leave(parts, partitionQueue(callerId, index, options))) === 'absent') return;
    }
  } catch (error) {
    if (parts.signal.aborted) return;
    const isAllowed = !isHcpError(error, 'topology_forbidden');
    parts.logger[isAllowed ? 'error' : 'warn'](
      { err: error },
      'The queues of an earlier arrangement could not be removed',
    );
  }
}

async function leave(parts: MoveParts, queue: QueueDeclaration): Promise<'removed' | 'absent'> {
  const { transport, clock, signal } = parts;
  for (;;) {
    signal.throwIfAborted();
    const outcome = await unlessAborted(signal, transport.retire(queue));
    if (outcome !== 'waiting') return outcome;
    let heardAt = clock.now();
    const consumer = await parts.consume({ ...queue, bindings: [] }, () => {
      heardAt = clock.now();
    });
    try {
      while (clock.now() - heardAt < QUIET_MS) await delay(clock, QUIET_MS, signal);
    } finally {
      await consumer.close();
    }
  }
}

/** Retiring a queue takes its time, and closing does not wait for it: a later life goes on with it. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  work.catch(() => {}); // perhaps nobody waits for it any more
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
