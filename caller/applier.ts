import type { EventMessage } from '../schemas/types.ts';
import { backoffMs } from '../shared/backoff.ts';
import { type Clock, delay } from '../shared/clock.ts';
import { HcpError, isHcpError } from '../shared/errors.ts';
import type { Logger } from '../shared/logger.ts';
import type { Store, StoreTransaction, Write } from '../shared/store/store.ts';
import type { Follow } from './follow.ts';
import { byLane, cursorWrites, type Job, onlyOne, Queue, remove } from './jobs.ts';
import type { Item, Lane } from './lane.ts';

/** Processes one event. What it writes through `tx` commits with the cursor, or not at all. */
export type EventHandler = (event: EventMessage, tx: StoreTransaction) => void | Promise<void>;

export interface ApplierOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly handler: EventHandler;
  readonly maxAttempts: number;
  readonly handlerTimeoutMs: number;
  /** Told after the commit, once for each lane that moved. */
  readonly onApplied: (lane: Lane, items: readonly Item[], before: Follow) => void;
  readonly onParked: (event: EventMessage, error: unknown) => void;
  /** The stored cursor is not where we thought: another process follows this session too. These items are out of hand. */
  readonly onRival: (lane: Lane, items: readonly Item[]) => Promise<void>;
}

/** Nothing was written. `culprit` is whose handler threw; without one the commit failed. */
interface Failure {
  readonly culprit: Job | undefined;
  readonly error: unknown;
}

/** `away`: the store could not; nothing was written, nothing may be acknowledged. */
type Attempt = 'committed' | 'rival' | 'away' | Failure;

const LARGEST_GROUP = 200;
/** A lane whose handler takes longer works by itself: it shall not hold up the others (HCP-214). */
const SLOW_MS = 50;
const RETRY = { firstDelayMs: 100, maxDelayMs: 5000 };

/**
 * Runs handlers and moves cursors, both in one transaction. Under load one transaction carries many events of many
 * sessions; when a handler throws, the group is rolled back, the culprit's lane goes on by itself, at its own pace, and
 * the others are done again.
 */
export class Applier {
  readonly #options: ApplierOptions;
  #shared = new Queue({ isShared: true });
  /** Where each lane with work is: its order must hold. */
  readonly #places = new Map<Lane, Queue>();
  readonly #slow = new WeakSet<Lane>();
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(options: ApplierOptions) {
    this.#options = options;
  }

  /** Takes items of one lane, in order. */
  add(lane: Lane, items: readonly Item[]): void {
    if (items.length === 0) return;
    if (this.#closing.signal.aborted) {
      for (const { lost } of items) lost();
      return;
    }
    const queue = this.#places.get(lane) ?? (this.#slow.has(lane) ? new Queue({ isShared: false }) : this.#shared);
    this.#places.set(lane, queue);
    queue.jobs.push(...items.map((item) => ({ lane, item, attempts: 0, error: undefined, pauseMs: 0 })));
    this.#start(queue);
  }

  /** Finishes what is running; what waits stays unprocessed and comes again. */
  async close(): Promise<void> {
    this.#closing.abort(new HcpError('caller_closed', 'The caller is closed'));
    await Promise.all(this.#running);
    for (const lane of [...this.#places.keys()]) for (const { lost } of this.#drop(lane)) lost();
  }

  #start(queue: Queue): void {
    if (queue.running !== undefined) return;
    const running = this.#run(queue).finally(() => this.#running.delete(running));
    queue.running = running;
    this.#running.add(running);
  }

  async #run(queue: Queue): Promise<void> {
    // What arrives in this turn of the event loop goes together.
    await new Promise((resolve) => setImmediate(resolve));
    const { signal } = this.#closing;
    for (let failures = 0; queue.jobs.length > 0 && !signal.aborted; ) {
      try {
        await this.#step(queue);
        failures = 0;
      } catch (error) {
        if (signal.aborted) break;
        this.#options.logger.error({ err: error }, 'Events could not be processed: they wait');
        queue.pauseMs = backoffMs(failures++, RETRY);
      }
    }
    queue.running = undefined;
  }

  async #step(queue: Queue): Promise<void> {
    const { clock, maxAttempts } = this.#options;
    const [head] = queue.jobs;
    if (head === undefined) return;
    const hasFailed = head.attempts >= maxAttempts;
    const pauseMs = Math.max(queue.pauseMs, hasFailed ? 0 : head.pauseMs);
    if (pauseMs > 0) await delay(clock, pauseMs, this.#closing.signal);
    queue.pauseMs = head.pauseMs = 0;
    if (hasFailed) return this.#park(queue, head);
    const isAlone = queue.cautious > 0 || (!queue.isShared && this.#slow.has(head.lane));
    const group = queue.jobs.slice(0, isAlone ? 1 : LARGEST_GROUP);
    const outcome = await this.#unlessSlow(queue, group);
    if (outcome !== 'away') queue.awayTimes = 0;
    if (outcome === 'committed') this.#committed(queue, group);
    else if (outcome === 'away') queue.pauseMs = backoffMs(queue.awayTimes++, RETRY);
    else if (outcome === 'rival') await this.#rivalled(queue, group);
    else this.#failed(queue, group, outcome);
  }

  #failed(queue: Queue, group: readonly Job[], { culprit = onlyOne(group), error }: Failure): void {
    if (culprit === undefined) {
      queue.cautious = group.length;
      return;
    }
    culprit.attempts++;
    const { attempts, lane, item } = culprit;
    const about = { session_id: lane.follow.sessionId, sequence: item.sequence, attempt: attempts };
    this.#options.logger.warn({ err: error, ...about }, 'An event handler threw');
    culprit.error = error;
    const own = queue.isShared ? this.#moveOut(queue, lane) : queue;
    own.cautious = own.jobs.indexOf(culprit) + 1;
    culprit.pauseMs = backoffMs(attempts - 1, RETRY);
    this.#start(own);
  }

  /** From now on, until it has no more work, this lane holds up nobody but itself. */
  #moveOut(queue: Queue, lane: Lane): Queue {
    const own = new Queue({ isShared: false });
    this.#move(lane, queue, own);
    return own;
  }

  #move(lane: Lane, from: Queue, to: Queue): void {
    to.jobs.push(...remove(from, (job) => job.lane === lane));
    this.#places.set(lane, to);
  }

  /** While a group takes long, the lanes that are not in it go on without it. */
  async #unlessSlow(queue: Queue, group: readonly Job[]): Promise<Attempt> {
    const { clock } = this.#options;
    const timer = clock.setTimeout(() => {
      if (queue !== this.#shared) return;
      this.#shared = new Queue({ isShared: true });
      const stuck = new Set(group.map(({ lane }) => lane));
      for (const lane of new Set(queue.jobs.map((job) => job.lane))) {
        if (!stuck.has(lane)) this.#move(lane, queue, this.#shared);
      }
      if (this.#shared.jobs.length > 0) this.#start(this.#shared);
    }, SLOW_MS);
    try {
      return await this.#attempt(group);
    } finally {
      clock.clearTimeout(timer);
    }
  }

  async #attempt(group: readonly Job[]): Promise<Attempt> {
    const { store, logger } = this.#options;
    let culprit: Job | undefined;
    try {
      await store.transaction(async (tx) => {
        culprit = undefined;
        for (const job of group) {
          culprit = job;
          await this.#handle(job, tx); // what it throws goes on as it is: the engine reads its labels
        }
        culprit = undefined;
        await tx.write(cursorWrites(byLane(group)));
      });
      return 'committed';
    } catch (error) {
      // A handler meets it too, where the rival wrote what it wants to write.
      if (isHcpError(error, 'store_conflict')) return 'rival';
      if (isHcpError(error, 'store_outcome_unknown')) return (await this.#hasMoved(group)) ? 'committed' : 'away';
      if (isHcpError(error) && error.retryable) {
        logger.warn({ err: error }, 'The store does not answer: events wait');
        return 'away';
      }
      return { culprit, error };
    }
  }

  async #handle({ lane, item }: Job, tx: StoreTransaction): Promise<void> {
    if (item.event === undefined) return;
    const { handler, handlerTimeoutMs, clock } = this.#options;
    const startedAt = performance.now();
    const done = new AbortController();
    let isSlow = false;
    const tooLong = delay(clock, handlerTimeoutMs, done.signal).then(
      () => {
        isSlow = true;
        throw new Error(`The handler took more than ${handlerTimeoutMs} ms`);
      },
      () => {}, // it was in time
    );
    try {
      await Promise.race([handler(item.event, tx), tooLong]);
    } finally {
      done.abort();
      if (isSlow || performance.now() - startedAt > SLOW_MS) this.#slow.add(lane);
      else this.#slow.delete(lane);
    }
  }

  /** After a commit whose answer was lost. */
  async #hasMoved(group: readonly Job[]): Promise<boolean> {
    const [[lane, items] = []] = byLane(group); // all of them or none
    return lane !== undefined && (await this.#storedCursor(lane)) >= Number(items?.at(-1)?.sequence);
  }

  async #storedCursor({ follow: { callerId, sessionId } }: Lane): Promise<number> {
    const row = await this.#options.store.get('follows', [callerId, sessionId]);
    return Number(row?.last_processed_sequence);
  }

  #committed(queue: Queue, group: readonly Job[]): void {
    this.#done(queue, group);
    for (const [lane, items] of byLane(group)) {
      const before = lane.follow;
      lane.follow = lane.after(items);
      for (const { settled } of items) settled();
      if (queue.isShared && this.#slow.has(lane) && this.#places.has(lane)) this.#start(this.#moveOut(queue, lane));
      this.#options.onApplied(lane, items, before);
    }
  }

  /** Whose cursor it was has to be found out; and it may have been a handler that swallowed a conflict of its own. */
  async #rivalled(queue: Queue, group: readonly Job[]): Promise<void> {
    const [lane, ...others] = byLane(group).keys();
    if (lane === undefined) return;
    if (others.length > 0) {
      queue.cautious = group.length;
      return;
    }
    if ((await this.#storedCursor(lane)) === lane.follow.cursor) {
      const error = new HcpError('store_conflict', 'A write of the event handler met a conflict');
      return this.#failed(queue, group, { culprit: undefined, error });
    }
    queue.cautious = 0;
    await this.#options.onRival(lane, this.#drop(lane));
  }

  #drop(lane: Lane): Item[] {
    const queue = this.#places.get(lane);
    this.#places.delete(lane);
    return queue ? remove(queue, (job) => job.lane === lane).map(({ item }) => item) : [];
  }

  #done(queue: Queue, group: readonly Job[]): void {
    const done = new Set(group);
    remove(queue, (job) => done.has(job));
    queue.cautious = Math.max(0, queue.cautious - group.length);
    const busy = new Set(queue.jobs.map(({ lane }) => lane));
    for (const { lane } of group) if (!busy.has(lane)) this.#places.delete(lane);
  }

  /** Put aside with its reason; the lane goes on (D-33). */
  async #park(queue: Queue, job: Job): Promise<void> {
    const { store, clock, onParked } = this.#options;
    const { event, sequence } = job.item;
    const { error } = job;
    const { callerId, sessionId } = job.lane.follow;
    const row = {
      caller_id: callerId,
      session_id: sessionId,
      sequence,
      kind: 'failed',
      parked_at: clock.now(),
      reason: error instanceof Error ? error.message : String(error),
      body: event === undefined ? '' : JSON.stringify(event),
    };
    const [cursor] = cursorWrites(byLane([job]));
    const outcome = await store.commit([{ put: 'parked', row }, cursor as Write]); // one lane, one cursor
    if (outcome !== 'committed') return this.#rivalled(queue, [job]);
    this.#committed(queue, [job]);
    if (event) onParked(event, error);
  }
}
