import { expect } from 'vitest';
import { acceptKnownCallers, type Run } from '../../callee/index.ts';
import type { RiskLevel } from '../../schemas/types.ts';
import { untilStopped } from '../support/executors.ts';
import { serveFurnace } from '../support/furnace.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, World } from '../support/world.ts';

/** Starts a task of this risk, then gives its session to somebody else behind the back of the instance that runs it. */
async function runAsFormerOwner(world: World, risk: RiskLevel): Promise<Run> {
  const { promise: begun, resolve: tellBegun } = Promise.withResolvers<Run>();
  await serveFurnace(
    world,
    (task, run) => {
      tellBegun(run);
      return untilStopped(task, run);
    },
    {
      policy: acceptKnownCallers({ [world.callerId]: { riskLimit: 'R5' } }),
      declaration: { safety: { ...TASK.safety, risk_ceiling: risk } },
    },
  );
  await world.submit();
  const { sessionId } = await world.started();
  const run = await begun;
  await run.guard.act('heat', { temperature: 20 });
  await world.store.commit([{ patch: 'sessions', key: [sessionId], set: { owner: 'heir', epoch: 2 } }]);
  return run;
}

describeOnStacks('an instance that was replaced without knowing it', (stack) => {
  for (const risk of ['R4', 'R5'] as const) {
    verifies(['HCP-308', 'HCP-112'], `acts no more on a task rated ${risk}`, async () => {
      await using world = await World.create(stack());
      const run = await runAsFormerOwner(world, risk);
      await expect(run.guard.act('heat', { temperature: 20 })).rejects.toMatchObject({ code: 'session_taken_over' });
      expect(run.signal.reason).toMatchObject({ code: 'session_taken_over' });
    });
  }
});
