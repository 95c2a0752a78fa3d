/** How long to wait before try `attempt` (0, 1, 2 …): doubling, capped, and spread by up to `jitter` (HCP-010). */
export function backoffMs(
  attempt: number,
  { firstDelayMs, maxDelayMs, jitter }: { firstDelayMs: number; maxDelayMs: number; jitter: number },
  random: () => number,
): number {
  const base = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(attempt, 31));
  return Math.round(base * (1 + jitter * random()));
}
