import { setTimeout as delay } from 'node:timers/promises';

/** How patient a check is, and what ends its waiting early. */
export interface Patience {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Why it is no use to wait any more, if so. */
  readonly fault: () => string | undefined;
}

const LOOK_EVERY_MS = 10;

/** Resolves when `look` finds something. Rejects, in one sentence, when it does not in time. */
export async function until<T>(
  what: () => string,
  look: () => T | undefined,
  { waitMs, signal, fault }: Patience,
): Promise<T> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    signal?.throwIfAborted();
    const found = look();
    if (found !== undefined) return found;
    const why = fault();
    if (why !== undefined) throw new Error(`${why}, while ${what()} was waited for`);
    if (performance.now() > deadline) throw new Error(`Waited ${waitMs} ms for ${what()}`);
    await delay(LOOK_EVERY_MS);
  }
}
