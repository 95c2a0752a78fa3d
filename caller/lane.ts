import type { EventMessage } from '../schemas/types.ts';
import { type Arrival, classifyArrival, closeHole, follows, missingBefore, type Range } from '../session/arrival.ts';
import { type Follow, observe } from './follow.ts';

/** One event on its way through a lane. */
export interface Item {
  readonly sequence: number;
  /** `undefined` for one that was invalid: it is passed over, but its number is spent (D-41). */
  readonly event: EventMessage | undefined;
  /** Whether it has a row among the parked, to be removed when it is processed. */
  readonly isParked: boolean;
  /** Called when it is processed for good. */
  readonly settled: () => void;
  /** Called when it has to be brought anew: another process moved the cursor. */
  readonly again: () => void;
  /** Called when it will not be processed here: the caller is closed. */
  readonly lost: () => void;
}

/** The order of one session's events: what is next, what waits, what is missing. Decides; others do. */
export class Lane {
  /** As stored. */
  follow: Follow;
  /** Events that came before their turn, by sequence. All of them are stored. */
  readonly #waiting = new Map<number, Item>();
  /** Being stored, to wait then. */
  readonly #reserved = new Set<number>();
  /** The last sequence that was let through; ahead of the cursor while it is being processed. */
  #tip: number;
  /** Given up, and stored with the next event. */
  #holes: readonly Range[];
  /** Whether `session_closed` was let through: what comes behind it is not processed (HCP-224). */
  #isOver: boolean;

  constructor(follow: Follow) {
    this.follow = follow;
    this.#tip = follow.cursor;
    this.#holes = follow.holes;
    this.#isOver = follow.finalState !== undefined;
  }

  /** Starts anew from what is stored: another process moved it. What waits has to be brought again. */
  reload(follow: Follow): void {
    this.follow = follow;
    this.#tip = follow.cursor;
    this.#holes = follow.holes;
    this.#isOver = follow.finalState !== undefined;
    this.#waiting.clear();
  }

  get isIdle(): boolean {
    return !this.isHolding && this.#tip === this.follow.cursor;
  }

  /** Whether anything waits for what is missing, or is about to. */
  get isHolding(): boolean {
    return this.#waiting.size > 0 || this.#reserved.size > 0;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** `over`: it comes behind the end of the session. */
  classify(sequence: number, furthest: number): Arrival | 'over' {
    if (this.#waiting.has(sequence) || this.#reserved.has(sequence)) return 'duplicate';
    const arrival = classifyArrival(sequence, { cursor: this.#tip, holes: this.#holes }, furthest);
    return this.#isOver && sequence > this.#tip ? 'over' : arrival;
  }

  /** Lets the next event through. */
  pass(item: Item): void {
    this.#waiting.delete(item.sequence);
    this.#tip = item.sequence;
    if (item.event?.payload.event_type === 'session_closed') this.#isOver = true;
  }

  /** It is being stored, to wait then. */
  reserve(sequence: number): void {
    this.#reserved.add(sequence);
  }

  unreserve(sequence: number): void {
    this.#reserved.delete(sequence);
  }

  wait(item: Item): void {
    this.#waiting.set(item.sequence, item);
  }

  /** What waits and is next now. */
  get next(): Item | undefined {
    if (this.#isOver) return undefined;
    const next = this.#waiting.get(this.#tip + 1);
    return next ?? (this.#tip === -1 ? this.#waiting.get(1) : undefined);
  }

  /** Lets through what waits and is next now. */
  release(): Item[] {
    const released: Item[] = [];
    for (let { next } = this; next !== undefined; next = this.next) {
      this.pass(next);
      released.push(next);
    }
    return released;
  }

  /** Takes out what waits behind the end of the session. */
  strays(): Item[] {
    if (!this.#isOver) return [];
    const strays = [...this.#waiting.values()];
    this.#waiting.clear();
    return strays;
  }

  /** What the waiting events wait for. */
  get gap(): Range | undefined {
    const first = this.#isOver ? undefined : this.#firstWaiting;
    return first === undefined || follows(this.#tip, first.sequence)
      ? undefined
      : missingBefore(first.sequence, this.#tip);
  }

  /** The event behind the gap tells of a recovery: nothing more will come (HCP-213). */
  get isGapExpected(): boolean {
    const { payload } = this.#firstWaiting?.event ?? {};
    if (payload?.event_type !== 'state_changed') return false;
    return payload.data.reason === 'recovered_from_checkpoint' || payload.data.reason === 'callee_restarted';
  }

  /** Goes on without what is missing. */
  giveUp(): Range | undefined {
    const { gap } = this;
    if (gap === undefined) return undefined;
    this.#holes = [...this.#holes, gap];
    this.#tip = gap[1];
    return gap;
  }

  /** One of the missing came after all. */
  fill(sequence: number): void {
    this.#holes = closeHole(this.#holes, sequence);
  }

  /** The record after these items, which are in order. */
  after(items: readonly Item[]): Follow {
    let { follow } = this;
    for (const { event, sequence } of items) {
      follow = event === undefined ? { ...follow, cursor: sequence } : observe(follow, event);
    }
    return { ...follow, holes: this.holesBefore(follow.cursor) };
  }

  /** The holes that belong to this cursor: one ahead of it may still be closed in time by a restart. */
  holesBefore(cursor: number): readonly Range[] {
    return this.#holes.filter(([from]) => from <= cursor);
  }

  get #firstWaiting(): Item | undefined {
    let first: Item | undefined;
    for (const item of this.#waiting.values()) if (first === undefined || item.sequence < first.sequence) first = item;
    return first;
  }
}
