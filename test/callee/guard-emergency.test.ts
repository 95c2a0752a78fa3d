import { expect } from 'vitest';
import { type Procedure, verifyAudit } from '../../callee/index.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { within } from '../../testing/transport-contract/stage.ts';
import { untilStopped } from '../support/executors.ts';
import { FaultyStore } from '../support/faulty-store.ts';
import { audited, auditKinds, type FurnaceOptions, serveFurnace } from '../support/furnace.ts';
import { GuardProcess } from '../support/guard-process.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const FAILED = [
  'task_failed safety_violation',
  'E3 RUNNING→FAILED safety_violation',
  'E4 closed FAILED safety_violation',
];

/** Serves a task that overheats as soon as it is told to. */
async function overheat(world: World, cool: Procedure, options: FurnaceOptions = {}) {
  const go = Promise.withResolvers<void>();
  const callee = await serveFurnace(
    world,
    async (_, run) => {
      await go.promise;
      await run.guard.act('heat', { temperature: 2000 });
      return { outputs: {} };
    },
    { ...options, procedures: { cool } },
  );
  await world.submit();
  const { sessionId } = await world.started();
  return { callee, sessionId, heat: go.resolve };
}

async function emergencyOf(world: World, sessionId: string): Promise<unknown> {
  const records = await audited(world.store, world.calleeId, sessionId);
  return records.filter(({ kind }) => kind === 'emergency').map(({ details }) => details);
}

describeOnStacks('an emergency', (stack) => {
  verifies(['V-27', 'HCP-310'], 'that fails ends the session all the same, and the failure is on record', async () => {
    await using world = await World.create(stack());
    const { sessionId, heat } = await overheat(world, () => {
      throw new Error('The pump is stuck');
    });
    heat();
    expect(await world.hearOut()).toEqual(FAILED);
    expect(await emergencyOf(world, sessionId)).toMatchObject([{ procedure: 'cool', result: 'failed' }]);
    expect(world.logged(/The pump is stuck/)).toHaveLength(1);
  });

  verifies(['V-27', 'HCP-123'], 'that never ends is waited for no longer than an abort', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const cooling = Promise.withResolvers<void>();
    const endless: Procedure = () => {
      cooling.resolve();
      return new Promise(() => {});
    };
    const { sessionId, heat } = await overheat(world, endless, { clock, abortTimeout: 'PT30S', leaseMs: 600_000 });
    heat();
    await cooling.promise;
    clock.advance(29_999);
    await world.echo();
    clock.advance(1);
    expect(await world.hearOut()).toEqual(FAILED);
    expect(await emergencyOf(world, sessionId)).toMatchObject([{ procedure: 'cool', result: 'timed out' }]);
  });

  verifies('HCP-310', 'may act within the envelope and speak, and what it says comes before the end', async () => {
    await using world = await World.create(stack());
    const outcomes: unknown[] = [];
    const { heat } = await overheat(world, async (_, run) => {
      outcomes.push(await run.guard.act('open_door').catch(({ code }) => code));
      outcomes.push(await run.guard.act('heat', { temperature: 0 }).then(() => 'done'));
      await run.progress({ stage: 'emergency', message: 'Cooled down' });
    });
    heat();
    expect(await world.hearOut()).toEqual([
      'E3 error', // the door stayed closed
      'E4 progress',
      'task_failed safety_violation',
      'E5 RUNNING→FAILED safety_violation',
      'E6 closed FAILED safety_violation',
    ]);
    expect(outcomes).toEqual(['safety_violation', 'done']);
  });

  verifies(
    ['V-27', 'HCP-310'],
    'begins at once while the store does not answer, and the end waits for it',
    async () => {
      await using world = await World.create(stack());
      await using inner = await stack().openStore();
      const faulty = new FaultyStore(inner);
      const cooling = Promise.withResolvers<void>();
      const { sessionId, heat } = await overheat(world, () => cooling.resolve(), { store: faulty.store });
      const { reached, release } = faulty.hold();
      heat();
      await within(20_000, 'the emergency to begin', cooling.promise);
      await reached; // the violation is about to be stored, and is not
      expect(await auditKinds(world, sessionId)).toEqual(['decision']);
      expect(world.unheard).toBe(0);
      release();
      expect(await world.hearOut()).toEqual(FAILED);
      expect((await auditKinds(world, sessionId)).toSorted()).toEqual(['decision', 'emergency', 'ended', 'violation']);
    },
  );

  verifies(['V-27', 'HCP-114'], 'needs no broker: all of it is told when that is back', async () => {
    await using world = await World.create(stack());
    const cooling = Promise.withResolvers<void>();
    const { sessionId, heat } = await overheat(world, () => cooling.resolve());
    const heal = await stack().stopBroker();
    try {
      heat();
      await within(20_000, 'the emergency', cooling.promise);
      while ((await world.store.get('sessions', [sessionId]))?.state !== 'FAILED') await new Promise(setImmediate);
    } finally {
      await heal();
    }
    expect((await world.hearFresh(3)).map(tell)).toEqual(FAILED);
  });

  verifies(
    ['V-27', 'HCP-310', 'HCP-312'],
    'whose process is killed in the middle is begun again by the next one, which does not resume the task',
    async () => {
      await using world = await World.create(stack());
      await using first = await GuardProcess.start(stack(), world, 'endless');
      await world.submit({ inputs: { heat: 2000 } });
      const { sessionId } = await world.started();
      await first.said('cooling temperature');
      while ((await auditKinds(world, sessionId)).at(-1) !== 'violation') await new Promise(setImmediate);
      await first.kill();
      await using second = await GuardProcess.start(stack(), world, 'quick');
      expect((await world.hearFresh(4)).map(tell)).toEqual([
        'E3 checkpoint_created',
        'task_failed safety_violation',
        'E4 RUNNING→FAILED safety_violation',
        'E5 closed FAILED safety_violation',
      ]);
      expect(second.lines.all.filter((line) => line !== 'ready')).toEqual(['cooling temperature']);
      expect(await auditKinds(world, sessionId)).toEqual(['decision', 'violation', 'emergency', 'ended']);
      expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
    },
    120_000,
  );

  verifies(
    ['V-27', 'HCP-310'],
    'that nobody can run any more ends the session all the same, and that it was missing is on record',
    async () => {
      await using world = await World.create(stack());
      await using first = await GuardProcess.start(stack(), world, 'endless');
      await world.submit({ inputs: { heat: 2000 } });
      const { sessionId } = await world.started();
      await first.said('cooling temperature');
      while ((await auditKinds(world, sessionId)).at(-1) !== 'violation') await new Promise(setImmediate);
      await first.kill();
      await using second = await GuardProcess.start(stack(), world, 'unknown');
      expect((await world.hearFresh(4)).map(tell).at(-1)).toBe('E5 closed FAILED safety_violation');
      expect(await emergencyOf(world, sessionId)).toMatchObject([{ procedure: 'cool', result: 'missing' }]);
      expect(second.lines.all).toEqual(['ready']);
    },
    120_000,
  );

  verifies(
    ['V-27', 'V-72'],
    'during which the caller aborts: the procedure runs to its end, once, and so does the session',
    async () => {
      await using world = await World.create(stack());
      const cooling = Promise.withResolvers<void>();
      const cooled = Promise.withResolvers<void>();
      let times = 0;
      const { sessionId, heat } = await overheat(world, () => {
        times++;
        cooling.resolve();
        return cooled.promise;
      });
      heat();
      await cooling.promise;
      await world.abort(sessionId);
      expect(tell(await world.next())).toBe('E3 RUNNING→ABORTING abort_requested');
      await world.echo(); // not over before it is safe
      cooled.resolve();
      const violation = await world.next();
      expect(violation).toMatchObject({
        payload: { sequence: 4, data: { code: 'safety_violation', recoverable: false } },
      });
      expect((await world.hearOut()).at(-1)).toBe('E6 closed ABORTED cleanup_complete');
      expect(times).toBe(1);
      expect((await auditKinds(world, sessionId)).toSorted()).toEqual([
        'abort',
        'decision',
        'emergency',
        'ended',
        'violation',
      ]);
    },
  );

  verifies('HCP-310', 'of one session does not keep others from working', async () => {
    await using world = await World.create(stack());
    const cooled = Promise.withResolvers<void>();
    const { heat } = await overheat(world, () => cooled.promise);
    heat();
    await world.echo();
    cooled.resolve();
    expect(await world.hearOut()).toEqual(FAILED);
  });

  verifies('HCP-310', 'is cleaned up after like any failure', async () => {
    await using world = await World.create(stack());
    const steps: string[] = [];
    await serveFurnace(
      world,
      async (task, run) => {
        run.onCleanup(() => void steps.push('onCleanup'));
        await run.guard.act('open_door').catch(() => steps.push('refused'));
        return untilStopped(task, run);
      },
      { cleanup: () => void steps.push('cleanup'), procedures: { shut_down: () => void steps.push('shut down') } },
    );
    await world.submit();
    await world.started();
    expect(await world.hearOut()).toEqual(FAILED);
    await world.echo();
    expect(steps).toEqual(['shut down', 'refused', 'onCleanup', 'cleanup']);
  });
});
