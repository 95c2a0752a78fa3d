import { expect } from 'vitest';
import type { Run } from '../../callee/index.ts';
import { CalleeProcess } from '../support/callee-process.ts';
import { scripted } from '../support/scripted.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

/** Runs until told to stop. */
function untilStopped(run: Run): Promise<never> {
  return new Promise((_, reject) => run.signal.addEventListener('abort', () => reject(run.signal.reason)));
}

describeOnStacks('several instances of a callee', (stack) => {
  verifies(
    ['HCP-124', 'HCP-125'],
    'share the commands, and an abort reaches the one that runs the session',
    async () => {
      await using world = await World.create(stack());
      const runs: string[][] = [[], []];
      const { promise: allRun, resolve: tellAllRun } = Promise.withResolvers<void>();
      for (const mine of runs) {
        await world.serve(
          async (_, run) => {
            mine.push(run.sessionId);
            if (runs.flat().length === 8) tellAllRun();
            return untilStopped(run);
          },
          { prefetch: 1 },
        );
      }
      for (let i = 0; i < 8; i++) await world.submit();
      const sessions = new Set<string>();
      while (sessions.size < 8) {
        const message = await world.next();
        if (message.type === 'event' && message.payload.sequence === 2) sessions.add(message.session_id);
      }
      await allRun;
      expect(runs.flat().toSorted()).toEqual([...sessions].toSorted());
      for (const sessionId of sessions) await world.abort(sessionId);
      const aborted = new Set<string>();
      while (aborted.size < 8) {
        const message = await world.next();
        if (tell(message) === 'E5 closed ABORTED cleanup_complete') aborted.add(message.session_id ?? '');
      }
      expect(aborted).toEqual(sessions);
    },
  );

  verifies('HCP-016', 'closing one hands its session over, and another continues it at once', async () => {
    await using world = await World.create(stack());
    const { promise: checkpointed, resolve: tellCheckpointed } = Promise.withResolvers<void>();
    const first = await world.serve(async (_, run) => {
      await run.checkpoint({ done: 1 }, { description: 'half' });
      tellCheckpointed();
      return untilStopped(run);
    });
    await world.submit();
    await checkpointed;
    await world.serve(async (_, run) => ({ outputs: { resumedFrom: run.resumedFrom?.data } }));
    await first.close();
    const told = await world.hear(9);
    expect(told.map(tell)).toEqual([
      'task_accepted',
      'E1 session_created',
      'E2 PENDING→RUNNING safety_check_passed',
      'E3 checkpoint_created',
      'E4 RUNNING→PAUSED callee_restarted',
      'E5 PAUSED→RUNNING recovered_from_checkpoint',
      'task_completed',
      'E6 RUNNING→COMPLETED task_completed',
      'E7 closed COMPLETED task_completed',
    ]);
    expect(told[6]).toMatchObject({ payload: { outputs: { resumedFrom: { done: 1 } } } });
  });

  verifies('HCP-016', 'closing waits for a task that cannot be continued elsewhere', async () => {
    await using world = await World.create(stack());
    const { promise: running, resolve: tellRunning } = Promise.withResolvers<void>();
    const { promise: proceed, resolve: tellProceed } = Promise.withResolvers<void>();
    const callee = await world.serve(async () => {
      tellRunning();
      await proceed;
      return { outputs: { done: true } };
    });
    await world.submit();
    await running;
    const closed = callee.close();
    tellProceed();
    await closed;
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies('HCP-112', 'a frozen instance that wakes up after it was replaced says nothing more and stops', async () => {
    await using world = await World.create(stack());
    const { transportUrl, storeUrl } = stack();
    const { calleeId, callerId } = world;
    await using zombie = new CalleeProcess({ transportUrl, storeUrl, calleeId, callerId, leaseMs: 1000 });
    await zombie.ready();
    await world.submit({ inputs: { script: [{ checkpoint: 'c' }, { hangUnlessResumed: true }, { workUntil: '/' }] } });
    await world.hear(4);
    zombie.signal('SIGSTOP');
    const heir = await world.callee({ leaseMs: 1000 });
    heir.capability(TASK, scripted);
    await heir.start();
    expect((await world.hearOut()).slice(-3)).toEqual([
      'task_completed',
      'E6 RUNNING→COMPLETED task_completed',
      'E7 closed COMPLETED task_completed',
    ]);
    zombie.signal('SIGCONT');
    // It takes commands again under a new life: what it had is gone.
    await world.submit({ inputs: { script: [] } });
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    const closings = world.received.filter(({ body }) => Buffer.from(body).toString().includes('session_closed'));
    expect(closings.length).toBe(2);
  });

  verifies(
    'HCP-112',
    'one that was declared dead stops its work, and takes it up again when nobody else did',
    async () => {
      await using world = await World.create(stack());
      const reasons: unknown[] = [];
      await world.serve(
        async (_, run) => {
          if (run.resumedFrom) return { outputs: { resumedFrom: run.resumedFrom.data } };
          await run.checkpoint({ done: 1 }, { description: 'half' });
          return untilStopped(run).catch((reason) => {
            reasons.push(reason);
            throw reason;
          });
        },
        { instanceId: 'one', leaseMs: 300 },
      );
      await world.submit();
      expect((await world.hear(4)).map(tell).at(-1)).toBe('E3 checkpoint_created');
      const dead = { patch: 'instances', key: [world.calleeId, 'one'], set: { lease_until: -1 } };
      expect(await world.store.commit([dead])).toBe('committed');
      expect((await world.hearFresh(5)).map(tell)).toEqual([
        'E4 RUNNING→PAUSED callee_restarted',
        'E5 PAUSED→RUNNING recovered_from_checkpoint',
        'task_completed',
        'E6 RUNNING→COMPLETED task_completed',
        'E7 closed COMPLETED task_completed',
      ]);
      expect(reasons).toEqual([expect.objectContaining({ code: 'session_taken_over' })]);
    },
  );
});
