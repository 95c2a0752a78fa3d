import { backoffMs } from '../shared/backoff.ts';
import { type Clock, delay } from '../shared/clock.ts';
import { HcpError, isHcpError } from '../shared/errors.ts';
import type { Logger } from '../shared/logger.ts';

const RETRY = { firstDelayMs: 100, maxDelayMs: 5000 };

/**
 * Waits for a store that does not answer, in place of the broker: a message that goes back to its queue is overtaken by
 * the next ones, and after some times it is a dead letter.
 */
export class Patience {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #closing = new AbortController();

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Does `work` until the store has answered; it may be done more than once. Rejects with `caller_closed` after close. */
  async with<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (!isHcpError(error) || !(error.retryable || error.code === 'store_outcome_unknown')) throw error;
        this.#logger.warn({ err: error }, 'The store does not answer: messages wait');
        await delay(this.#clock, backoffMs(attempt, RETRY), this.#closing.signal);
      }
    }
  }

  close(): void {
    this.#closing.abort(new HcpError('caller_closed', 'The caller is closed'));
  }
}
