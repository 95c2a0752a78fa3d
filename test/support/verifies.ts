import { it } from 'vitest';

/** A test that proves requirements by name. The ids end up in its title, where the requirement report finds them. */
export function verifies(
  ids: string | readonly string[],
  behaviour: string,
  proof: () => void | Promise<void>,
  timeLimitMs?: number,
): void {
  it(`${behaviour} [${[ids].flat().join(', ')}]`, proof, timeLimitMs);
}
