import type { EventMessage, XStatusData } from '../schemas/types.ts';
import type { Range } from '../session/arrival.ts';
import type { SessionState } from '../session/lifecycle.ts';
import type { Clock } from '../shared/clock.ts';
import { HcpError } from '../shared/errors.ts';
import { schemaFault } from '../shared/messages/validators.ts';
import type { Verdict } from './event-channel.ts';
import { type Follow, observe } from './follow.ts';
import { type Item, Lane } from './lane.ts';
import { type Outcome, outcomeOf } from './outcome.ts';

/** Where a session is, by its callee's own word. */
export interface SessionStatus {
  readonly state: SessionState;
  readonly lastSequence: number;
  readonly resultSent: boolean;
}

export type Alarm = 'gap' | 'grace' | 'abort' | 'stall';

const NOTHING = () => {};

/** A session that is followed in this process: its lane, its timers, and who waits for what. */
export class FollowedSession {
  readonly #statusWaiters = new Set<(status: SessionStatus) => void>();
  readonly #stateWaiters = new Set<(state: SessionState) => void>();
  readonly lane: Lane;
  /** Events that are being stored or processed: what comes of a second copy is what comes of the first. */
  readonly inHand = new Map<number, Promise<Verdict>>();
  /** Until then nothing may be added to the lane. */
  reloading: Promise<void> | undefined;
  /** Whose turn it is, for a reader; the first one is in its hands until it asks for the next. */
  readonly unread: Item[] = [];
  isBeingRead = false;
  readonly #clock: Clock;
  readonly #timers = new Map<Alarm, unknown>();
  readonly #waiters = new Set<() => void>();
  readonly #ending = Promise.withResolvers<Outcome>();
  readonly #stall = Promise.withResolvers<never>();
  #overdue: Promise<never> | undefined;
  #ahead: Follow;
  #held: Range | undefined;
  #settled = false;
  #closed = false;

  constructor(follow: Follow, clock: Clock) {
    this.lane = new Lane(follow);
    this.#ahead = follow;
    this.#clock = clock;
    // Nobody may be waiting for them.
    this.#ending.promise.catch(NOTHING);
    this.#stall.promise.catch(NOTHING);
  }

  /** As stored: what was processed. */
  get follow(): Follow {
    return this.lane.follow;
  }

  /** What the callee has told so far, also of what a reader has not read. */
  get told(): Follow {
    if (this.unread.length === 0) return this.follow;
    const { cursor, state, finalState } = this.#ahead;
    return { ...this.follow, cursor, state, finalState };
  }

  /** Nothing is held back, and nothing is being processed. */
  get isQuiet(): boolean {
    return this.unread.length > 0 ? !this.lane.isHolding : this.lane.isIdle;
  }

  /** How it ends. Rejects when it should have ended and has not, until it has. */
  get result(): Promise<Outcome> {
    if (this.#settled) return this.#ending.promise;
    const result = Promise.race([this.#ending.promise, this.#stall.promise]);
    result.catch(NOTHING);
    return result;
  }

  /** How it ends, however late. */
  get ending(): Promise<Outcome> {
    return this.#ending.promise;
  }

  get hasSettled(): boolean {
    return this.#settled;
  }

  /** The caller is closed: nothing more will come. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Events for a reader, whose turn it is. */
  deliver(items: readonly Item[]): void {
    for (const item of items) {
      const before = this.told;
      this.#ahead = item.event ? observe(before, item.event) : { ...before, cursor: item.sequence };
      this.unread.push(item);
    }
    this.passed(items);
  }

  /** Events have had their turn: whoever waits for a state hears of each one, however short it lasted. */
  passed(items: readonly Item[]): void {
    for (const { event } of items) {
      if (event?.payload.event_type === 'state_changed') this.#tellState(event.payload.data.to_state as SessionState);
    }
  }

  #tellState(state: SessionState): void {
    for (const tell of this.#stateWaiters) tell(state);
  }

  /** Resolves the result if it is known now. `anyway`: what is missing before it will not come any more. */
  settle({ anyway = false } = {}): boolean {
    const outcome = outcomeOf(this.told, this.isQuiet, anyway);
    if (outcome === undefined) return false;
    this.#settled = true;
    this.clearAlarm('abort');
    this.#ending.resolve(outcome);
    return true;
  }

  fail(error: HcpError): void {
    this.#settled = true;
    this.#ending.reject(error);
    this.changed();
  }

  /** It should have ended by now, but may still. */
  stall(error: HcpError): void {
    this.#stall.reject(error);
  }

  /** Rejects when the session has not ended by then. Asked again meanwhile, the first time counts. */
  overdue(ms: number, error: () => HcpError): Promise<never> {
    this.#overdue ??= new Promise<never>((_, reject) => {
      this.setAlarm('abort', ms, () => {
        this.#overdue = undefined;
        reject(error());
      });
    });
    return this.#overdue;
  }

  /** Waits for what is missing. */
  hold(gap: Range, ms: number, ring: () => void): void {
    this.#held = gap;
    this.setAlarm('gap', ms, ring);
  }

  /** Whether the time for this gap is running: it is the same one while the same event waits behind it. */
  isHolding([, to]: Range): boolean {
    return this.hasAlarm('gap') && this.#held?.[1] === to;
  }

  /** One timer of each kind; setting it again starts it anew. */
  setAlarm(alarm: Alarm, ms: number, ring: () => void): void {
    this.clearAlarm(alarm);
    const timer = this.#clock.setTimeout(() => {
      this.#timers.delete(alarm);
      ring();
    }, ms);
    this.#timers.set(alarm, timer);
  }

  hasAlarm(alarm: Alarm): boolean {
    return this.#timers.has(alarm);
  }

  clearAlarm(alarm: Alarm): void {
    this.#clock.clearTimeout(this.#timers.get(alarm));
    this.#timers.delete(alarm);
  }

  clearAlarms(): void {
    for (const alarm of [...this.#timers.keys()]) this.clearAlarm(alarm);
  }

  /** The callee's next word on where the session is. */
  nextStatus(): Promise<SessionStatus> {
    return new Promise((resolve) => this.#statusWaiters.add(resolve));
  }

  statusTold({ payload }: EventMessage): void {
    if (schemaFault('event:x-status', payload.data)) return;
    const { state, last_sequence: lastSequence, result_sent: resultSent } = payload.data as unknown as XStatusData;
    for (const tell of this.#statusWaiters) tell({ state, lastSequence, resultSent });
    this.#statusWaiters.clear();
  }

  /** Resolves when the session is in this state, or was for a moment meanwhile. Rejects with the signal's reason. */
  reaches(state: SessionState, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const hear = (told: SessionState) => {
        if (told === state) resolve();
      };
      const stop = () => {
        this.#stateWaiters.delete(hear);
        reject(signal.reason);
      };
      signal.addEventListener('abort', stop, { once: true });
      this.#stateWaiters.add(hear);
      hear(this.told.state);
    });
  }

  /** Something happened: whoever waits looks again. */
  changed(): void {
    this.#tellState(this.told.state); // another process of ours may have followed it there
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }

  nextChange(): Promise<void> {
    return new Promise((resolve) => this.#waiters.add(resolve));
  }

  close(): void {
    this.#closed = true;
    this.clearAlarms();
    if (!this.#settled) this.fail(new HcpError('caller_closed', 'The caller is closed'));
    this.changed();
  }
}
