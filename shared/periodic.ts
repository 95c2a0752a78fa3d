import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

/** Tasks done again and again, each one at a time. What fails is told and tried at the next turn. */
export class Periodic {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #timers = new Set<unknown>();
  #stopped = false;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** First after `ms`, then `ms` after each end. */
  every(ms: number, work: () => Promise<void>): void {
    if (this.#stopped) return;
    const timer = this.#clock.setTimeout(() => {
      this.#timers.delete(timer);
      work()
        .catch((error: unknown) => this.#logger.error({ err: error }, 'A periodic task failed'))
        .finally(() => this.every(ms, work));
    }, ms);
    this.#timers.add(timer);
  }

  /** What is running ends by itself. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) this.#clock.clearTimeout(timer);
  }
}
