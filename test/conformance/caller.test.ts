import { describe, expect, it } from 'vitest';
import { callerChecks } from '../../conformance/caller/index.ts';
import { benchOn, OUR_CALLER } from '../support/broken-caller-bench.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const LIMIT_MS = 60_000;

describe('the checks of a caller', () => {
  it('have ids of their own, a family, and say what they prove', () => {
    expect(new Set(callerChecks.map(({ id }) => id)).size).toBe(callerChecks.length);
    expect(callerChecks.length).toBeGreaterThanOrEqual(45);
    for (const { id, family, requirements } of callerChecks) {
      expect(id).toMatch(new RegExp(`^caller/${family}/[a-z0-9-]+$`));
      expect(requirements.length).toBeGreaterThan(0);
    }
  });
});

describeOnStacks('our caller passes the kit', (stack) => {
  for (const { id, requirements, title, run } of callerChecks) {
    verifies(
      requirements,
      `${id}: ${title}`,
      async () => {
        await using opened = await benchOn(stack(), OUR_CALLER);
        await run(opened);
      },
      LIMIT_MS,
    );
  }
});
