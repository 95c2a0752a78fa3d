import { assert, double, nat, property } from 'fast-check';
import { describe, expect } from 'vitest';
import { backoffMs } from '../../shared/backoff.ts';
import { verifies } from '../support/verifies.ts';

const DEFAULTS = { firstDelayMs: 1000, maxDelayMs: 60_000, jitter: 0.2 };

describe('the back-off', () => {
  verifies('HCP-010', 'doubles from one second to a minute and stays there', () => {
    const delays = [0, 1, 2, 3, 4, 5, 6, 7, 1000].map((attempt) => backoffMs(attempt, DEFAULTS, () => 0));
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  verifies('HCP-010', 'adds up to a fifth, never takes away', () => {
    const random = double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    assert(
      property(nat(), random, (attempt, chance) => {
        const least = backoffMs(attempt, DEFAULTS, () => 0);
        const delay = backoffMs(attempt, DEFAULTS, () => chance);
        expect(delay).toBeGreaterThanOrEqual(least);
        expect(delay).toBeLessThanOrEqual(least * 1.2);
      }),
    );
  });
});
