import type { Clock } from '../shared/clock.ts';

/** The deadlines of one session. They are stored data, armed again after each restart: no timer survives a process. */
export class SessionTimers {
  readonly #clock: Clock;
  readonly #onDeadline: () => void;
  readonly #onIdle: () => void;
  #deadline: unknown;
  #idle: unknown;
  #lastTouched = 0;
  #idleMs = 0;
  #abort: unknown;

  constructor(clock: Clock, { onDeadline, onIdle }: { onDeadline: () => void; onIdle: () => void }) {
    this.#clock = clock;
    this.#onDeadline = onDeadline;
    this.#onIdle = onIdle;
  }

  deadlineAt(at: number | undefined): void {
    this.#clock.clearTimeout(this.#deadline);
    if (at !== undefined)
      this.#deadline = this.#clock.setTimeout(this.#onDeadline, Math.max(0, at - this.#clock.now()));
  }

  /** Idle when this is not called again within `ms`. One timer walks behind, however often it is called. */
  idleIn(ms: number): void {
    this.#lastTouched = this.#clock.now();
    if (this.#idle !== undefined && ms === this.#idleMs) return;
    this.#clock.clearTimeout(this.#idle);
    this.#idleMs = ms;
    this.#armIdle(ms);
  }

  /** Resolves after `ms`, unless cleared. */
  after(ms: number): Promise<'timed out'> {
    return new Promise((resolve) => {
      this.#abort = this.#clock.setTimeout(() => resolve('timed out'), ms);
    });
  }

  clear(): void {
    for (const timer of [this.#deadline, this.#idle, this.#abort]) this.#clock.clearTimeout(timer);
    this.#idle = undefined;
  }

  #armIdle(ms: number): void {
    this.#idle = this.#clock.setTimeout(() => {
      const leftMs = this.#lastTouched + this.#idleMs - this.#clock.now();
      if (leftMs > 0) return this.#armIdle(leftMs);
      this.#idle = undefined;
      this.#onIdle();
    }, ms);
  }
}
