export interface Backoff {
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Up to this fraction is added at random. @default 0 */
  readonly jitter?: number;
}

/** How long to wait before try `attempt` (0, 1, 2 …): doubling, capped, and spread by up to `jitter` (HCP-010). */
export function backoffMs(
  attempt: number,
  { firstDelayMs, maxDelayMs, jitter = 0 }: Backoff,
  random = Math.random,
): number {
  const base = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(attempt, 31));
  return Math.round(base * (1 + jitter * random()));
}
