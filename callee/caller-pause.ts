import type { Clock } from '../shared/clock.ts';
import { HcpError } from '../shared/errors.ts';

/** The pause a caller asked for (`pause/1`): wanted, at the next safe point or at its deadline, and then kept. */
export class CallerPause {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #wanted: (() => Promise<void>) | undefined;
  #timer: unknown;
  #kept: PromiseWithResolvers<void> | undefined;
  #isOver = false;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.end(), { once: true });
  }

  get isWanted(): boolean {
    return this.#wanted !== undefined;
  }

  /** Lets the work go on to a safe point, or up to `drainMs`; then `pause` is called. */
  drain(drainMs: number, pause: () => Promise<void>): void {
    this.end();
    if (this.#signal.aborted) return;
    this.#wanted = pause;
    this.#timer = this.#clock.setTimeout(() => void this.#pauseNow(), drainMs);
  }

  /** The session is paused from now on. */
  keep(): void {
    this.end();
    // Nobody would end it any more, and the work could not get away.
    if (!this.#signal.aborted) this.#kept = Promise.withResolvers();
  }

  /** Not wanted any more. */
  end(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#wanted = undefined;
    this.#kept?.resolve();
    this.#kept = undefined;
  }

  /** The session is over: whatever still waits must not go on. */
  close(): void {
    this.#isOver = true;
    this.end();
  }

  /** Resolves when the work may go on; rejects when it must stop instead. */
  async safePoint(): Promise<void> {
    // Again and again: by the time the work is woken up, the next pause may have begun.
    while (this.#wanted || this.#kept) {
      await this.#pauseNow();
      await this.#kept?.promise;
    }
    this.#signal.throwIfAborted();
    if (this.#isOver) throw new HcpError('session_closed', 'The session is over');
  }

  async #pauseNow(): Promise<void> {
    const pause = this.#wanted;
    this.#wanted = undefined;
    this.#clock.clearTimeout(this.#timer);
    await pause?.();
  }
}
