import { backoffMs } from '../shared/backoff.ts';
import { type Clock, delay } from '../shared/clock.ts';
import { isHcpError } from '../shared/errors.ts';
import type { Logger } from '../shared/logger.ts';
import type { Store, Write } from '../shared/store/store.ts';
import type { OutgoingMessage, Transport } from '../shared/transport/transport.ts';

/** What a session hands over once it is durable. Without a message there is nothing to publish, only a place to pass. */
export interface OutboxEntry {
  readonly position: number;
  readonly message: OutgoingMessage | undefined;
}

/** Whose messages they are. */
export interface LaneOwner {
  readonly sessionId: string;
  readonly epoch: number;
}

interface Pending extends OutboxEntry {
  /** Confirmed, behind one that is not. */
  confirmed: boolean;
}

interface Lane extends LaneOwner {
  /** In log order, from the first that is not confirmed. The first `inFlight` of them are under way. */
  readonly entries: Pending[];
  inFlight: number;
  /** Whether one at a time is sent, after a failure. */
  careful: boolean;
  failures: number;
  waiting: boolean;
  /** Counts the starts over: an answer to an earlier try means nothing any more. */
  tries: number;
  through: number;
  storedThrough: number;
  closed: boolean;
}

export interface OutboxOptions {
  readonly transport: Transport;
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly maxBacklog: number;
}

const LANE_WINDOW = 128;
const RETRY = { firstDelayMs: 200, maxDelayMs: 30_000 };
/** How often the store is told what has been published. A crash in between means duplicates, never loss. */
const FLUSH_MS = 1000;
const LARGEST_FLUSH = 500;

/** Publishes what sessions have stored, per session in log order, pipelined, until the broker has it (HCP-113, HCP-114). */
export class EventOutbox {
  readonly #options: OutboxOptions;
  readonly #lanes = new Map<string, Lane>();
  readonly #closing = new AbortController();
  #backlog = 0;
  #warned = false;
  #roomWaiters: (() => void)[] = [];
  #idleWaiters: (() => void)[] = [];
  #flushTimer: unknown;
  #flushing: Promise<void> | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** How many messages the broker has not confirmed. */
  get backlog(): number {
    return this.#backlog;
  }

  /** `publishedThrough`: what an earlier life got confirmed. */
  open(owner: LaneOwner, publishedThrough: number): void {
    this.drop(owner.sessionId);
    this.#lanes.set(owner.sessionId, {
      ...owner,
      entries: [],
      inFlight: 0,
      careful: false,
      failures: 0,
      waiting: false,
      tries: 0,
      through: publishedThrough,
      storedThrough: publishedThrough,
      closed: false,
    });
  }

  /** Whether something of this session is in our care. */
  has(sessionId: string): boolean {
    return this.#lanes.has(sessionId);
  }

  /** Takes over durable entries, in log order. `closed`: nothing follows them. */
  add(sessionId: string, entries: readonly OutboxEntry[], { closed = false } = {}): void {
    const lane = this.#lanes.get(sessionId);
    if (lane === undefined) return;
    lane.closed ||= closed;
    for (const { position, message } of entries) lane.entries.push({ position, message, confirmed: false });
    this.#backlog += entries.length;
    this.#pump(lane);
  }

  /** Forgets a session that another instance has now. */
  drop(sessionId: string): void {
    const lane = this.#lanes.get(sessionId);
    if (lane === undefined) return;
    this.#lanes.delete(sessionId);
    this.#confirmed(lane.entries.splice(0).length);
  }

  /** Resolves when there is room for more. The broker may be away for long: what is stored then is bounded. */
  async room(): Promise<void> {
    const { maxBacklog, logger } = this.#options;
    while (this.#backlog >= maxBacklog && !this.#closing.signal.aborted) {
      if (!this.#warned) logger.warn({ backlog: this.#backlog }, 'The broker takes too little: tasks wait for it');
      this.#warned = true;
      await new Promise<void>((resolve) => this.#roomWaiters.push(resolve));
    }
  }

  /** Resolves when everything is confirmed. */
  async drained(): Promise<void> {
    while (this.#backlog > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Stops publishing and stores how far it got. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#options.clock.clearTimeout(this.#flushTimer);
    for (const wake of this.#roomWaiters.splice(0)) wake();
    await this.#flushing;
    await this.#flush();
  }

  #pump(lane: Lane): void {
    if (lane.waiting || this.#closing.signal.aborted) return;
    const window = lane.careful ? 1 : LANE_WINDOW;
    while (lane.inFlight < Math.min(window, lane.entries.length)) {
      const entry = lane.entries[lane.inFlight] as Pending; // the loop stays within the list
      lane.inFlight++;
      void this.#publish(lane, entry, lane.tries);
    }
    if (lane.entries.length === 0) this.#scheduleFlush();
  }

  async #publish(lane: Lane, { position, message }: OutboxEntry, tries: number): Promise<void> {
    let why: unknown = 'the caller has no queue';
    try {
      if (message === undefined || (await this.#options.transport.publish(message)) === 'confirmed') {
        return this.#succeeded(lane, position, tries);
      }
    } catch (error) {
      if (isHcpError(error, 'transport_closed')) return;
      why = error;
    }
    this.#failed(lane, tries, why);
  }

  #succeeded(lane: Lane, position: number, tries: number): void {
    if (tries !== lane.tries || !this.#isOpen(lane)) return;
    // Confirms may come out of order; what is in front of an open one stays.
    const done = lane.entries.find((entry) => entry.position === position);
    if (done === undefined) return;
    done.confirmed = true;
    lane.careful = false;
    lane.failures = 0;
    this.#pass(lane);
    this.#pump(lane);
    this.#scheduleFlush();
  }

  /** Lets go of every confirmed one at the head. */
  #pass(lane: Lane): void {
    const open = lane.entries.findIndex(({ confirmed }) => !confirmed);
    const passed = lane.entries.splice(0, open < 0 ? lane.entries.length : open);
    lane.through = passed.at(-1)?.position ?? lane.through;
    lane.inFlight -= passed.length;
    this.#confirmed(passed.length);
  }

  /**
   * Starts over at the first unconfirmed one, one by one, after a pause. Those behind it are sent again even if they got
   * through: a caller that wants them in order must get them in order.
   */
  #failed(lane: Lane, tries: number, why: unknown): void {
    if (tries !== lane.tries || !this.#isOpen(lane)) return;
    lane.tries++;
    lane.inFlight = 0;
    for (const entry of lane.entries) entry.confirmed = false;
    lane.careful = true;
    lane.waiting = true;
    const waitMs = backoffMs(lane.failures++, RETRY);
    const { clock, logger } = this.#options;
    logger.warn({ session_id: lane.sessionId, err: why, failures: lane.failures }, 'Not published: kept, tried again');
    delay(clock, waitMs, this.#closing.signal).then(
      () => {
        lane.waiting = false;
        this.#pump(lane);
      },
      () => {}, // closed meanwhile
    );
  }

  /** Not dropped, and not opened anew. */
  #isOpen(lane: Lane): boolean {
    return this.#lanes.get(lane.sessionId) === lane;
  }

  #confirmed(count: number): void {
    if (count === 0) return;
    this.#backlog -= count;
    if (this.#backlog < this.#options.maxBacklog) {
      this.#warned = false;
      for (const wake of this.#roomWaiters.splice(0)) wake();
    }
    if (this.#backlog === 0) for (const wake of this.#idleWaiters.splice(0)) wake();
  }

  #scheduleFlush(): void {
    if (this.#flushTimer !== undefined || this.#closing.signal.aborted) return;
    this.#flushTimer = this.#options.clock.setTimeout(() => {
      this.#flushTimer = undefined;
      this.#flushing = this.#flush();
    }, FLUSH_MS);
  }

  /** Tells the store, for all sessions at once. A session that is over and published needs no further care. */
  async #flush(): Promise<void> {
    const dirty = [...this.#lanes.values()].filter(
      (lane) => lane.through > lane.storedThrough || (lane.closed && lane.entries.length === 0),
    );
    for (let start = 0; start < dirty.length; start += LARGEST_FLUSH) {
      await this.#store(dirty.slice(start, start + LARGEST_FLUSH));
    }
  }

  async #store(lanes: readonly Lane[]): Promise<void> {
    const told = lanes.map((lane) => ({ lane, through: lane.through, over: lane.closed && lane.entries.length === 0 }));
    const writes = told.map(
      ({ lane, through, over }): Write => ({
        patch: 'sessions',
        key: [lane.sessionId],
        set: { published_through: through, ...(over && { active: null }) },
        if: { epoch: lane.epoch },
      }),
    );
    try {
      const answer = await this.#options.store.commit(writes);
      if (answer !== 'committed') {
        // Somebody else has that session now, or it is purged: not ours to care for.
        const [lost] = told.splice(answer.write, 1);
        if (lost && this.#isOpen(lost.lane)) this.drop(lost.lane.sessionId);
        return this.#store(told.map(({ lane }) => lane));
      }
      for (const { lane, through, over } of told) {
        lane.storedThrough = through;
        if (over && this.#isOpen(lane)) this.#lanes.delete(lane.sessionId);
      }
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'The store could not be told what was published');
      this.#scheduleFlush();
    }
  }
}
