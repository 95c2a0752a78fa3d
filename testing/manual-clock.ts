import type { Clock } from '../shared/clock.ts';

interface Timer {
  readonly dueAt: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that stands still until told: 72 hours pass in one call. */
export class ManualClock implements Clock {
  #now: number;
  #order = 0;
  readonly #timers = new Map<number, Timer>();

  constructor(now = Date.UTC(2025, 0, 15, 8, 30)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  setTimeout(callback: () => void, delayMs: number): number {
    const order = this.#order++;
    this.#timers.set(order, { dueAt: this.#now + Math.max(0, delayMs), order, callback });
    return order;
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as number);
  }

  /** Moves time on and fires what falls due, in order, including timers set meanwhile. */
  advance(byMs: number): void {
    const until = this.#now + byMs;
    for (let next = this.#next(until); next; next = this.#next(until)) {
      this.#timers.delete(next.order);
      this.#now = Math.max(this.#now, next.dueAt);
      next.callback();
    }
    this.#now = until;
  }

  #next(until: number): Timer | undefined {
    return [...this.#timers.values()]
      .filter((timer) => timer.dueAt <= until)
      .sort((a, b) => a.dueAt - b.dueAt || a.order - b.order)[0];
  }
}
