/** Time as an argument. The shape of XState's clock plus `now`, so one manual clock drives every timer. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  setTimeout(callback: () => void, delayMs: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** A longer delay makes Node fire at once, so a long one is walked in steps of this. */
const LONGEST_NODE_TIMER_MS = 2 ** 31 - 1;

interface SystemTimer {
  handle: NodeJS.Timeout;
}

/** The machine's clock. Delays of any length work; a running timer keeps the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout(callback, delayMs) {
    const timer: SystemTimer = { handle: setTimeout(step, Math.min(delayMs, LONGEST_NODE_TIMER_MS)) };
    let leftMs = delayMs;
    function step(): void {
      leftMs -= LONGEST_NODE_TIMER_MS;
      if (leftMs <= 0) callback();
      else timer.handle = setTimeout(step, Math.min(leftMs, LONGEST_NODE_TIMER_MS));
    }
    return timer;
  },
  clearTimeout(timer) {
    // Only what setTimeout above returned comes back here.
    if (timer !== undefined) clearTimeout((timer as SystemTimer).handle);
  },
};

/** Resolves after `delayMs`, or rejects with the signal's reason when that comes first. */
export function delay(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, delayMs);
    function onAbort(): void {
      clock.clearTimeout(timer);
      reject(signal?.reason);
    }
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
