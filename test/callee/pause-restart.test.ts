import { expect } from 'vitest';
import type { Executor } from '../../callee/index.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { CalleeProcess } from '../support/callee-process.ts';
import { untilStopped } from '../support/executors.ts';
import { askPause, askResume, controlled, PAUSABLE, PAUSING, watched } from '../support/pausing.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const HOUR = 3_600_000;
const NOW = { mode: 'immediate' } as const;

describeOnStacks('a callee that ends while a caller keeps a session paused', (stack) => {
  /** Has a checkpoint first; counts its lives. */
  function checkpointed(lives: unknown[]): Executor {
    return async (task, run) => {
      lives.push(run.resumedFrom?.data);
      if (run.resumedFrom) return { outputs: { from: run.resumedFrom.data } };
      await run.checkpoint({ done: 1 }, { description: 'half' });
      return untilStopped(task, run);
    };
  }

  verifies(['pause/1', 'V-16'], 'leaves it paused; nothing of it runs before the caller resumes it', async () => {
    await using world = await World.create(stack());
    const lives: unknown[] = [];
    const first = await world.serve(checkpointed(lives), {}, PAUSABLE);
    await world.submit(PAUSING);
    const { sessionId } = await world.started();
    expect(tell(await world.next())).toBe('E3 checkpoint_created');
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E4 RUNNING→PAUSED paused_by_caller');
    await first.close();
    const second = await world.serve(checkpointed(lives), {}, PAUSABLE);
    await world.echo();
    await second.close();
    await world.serve(checkpointed(lives), {}, PAUSABLE);
    await world.echo();
    expect(lives).toEqual([undefined]);
    await askResume(world, sessionId);
    expect(await world.hearOut()).toEqual([
      'E5 PAUSED→RUNNING resumed_by_caller',
      'task_completed',
      'E6 RUNNING→COMPLETED task_completed',
      'E7 closed COMPLETED task_completed',
    ]);
    expect(lives).toEqual([undefined, { done: 1 }]);
  });

  verifies(['pause/1', 'V-16'], 'does not forget that one was to be paused', async () => {
    await using world = await World.create(stack());
    const lives: unknown[] = [];
    const first = await world.serve(checkpointed(lives), {}, PAUSABLE);
    await world.submit(PAUSING);
    const { sessionId } = await world.started();
    expect(tell(await world.next())).toBe('E3 checkpoint_created');
    await askPause(world, sessionId, { drain_timeout: 'PT1H' });
    await world.echo();
    await first.close();
    await world.serve(checkpointed(lives), {}, PAUSABLE);
    expect(tell(await world.next())).toBe('E4 RUNNING→PAUSED callee_restarted');
    await world.echo();
    expect(lives).toHaveLength(1);
    await askResume(world, sessionId);
    expect((await world.hearOut())[0]).toBe('E5 PAUSED→RUNNING resumed_by_caller');
    expect(lives).toEqual([undefined, { done: 1 }]);
  });

  verifies(['pause/1', 'V-20'], 'finds an abort of it after the restart as well', async () => {
    await using world = await World.create(stack());
    const lives: unknown[] = [];
    const first = await world.serve(checkpointed(lives), {}, PAUSABLE);
    await world.submit(PAUSING);
    const { sessionId } = await world.started();
    await world.next();
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E4 RUNNING→PAUSED paused_by_caller');
    await first.close();
    await world.abort(sessionId);
    await world.serve(checkpointed(lives), {}, PAUSABLE);
    expect(await world.hearOut()).toEqual([
      'E5 PAUSED→ABORTING abort_requested',
      'E6 ABORTING→ABORTED cleanup_complete',
      'E7 closed ABORTED cleanup_complete',
    ]);
    expect(lives).toHaveLength(1);
  });

  verifies(['pause/1', 'HCP-120'], 'ends it after the restart when its time is over', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const lives: unknown[] = [];
    const first = await world.serve(checkpointed(lives), { clock }, PAUSABLE);
    await world.submit({ ...PAUSING, constraints: { max_duration: 'PT1H' } });
    const { sessionId } = await world.started();
    await world.next();
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E4 RUNNING→PAUSED paused_by_caller');
    await first.close();
    await world.serve(checkpointed(lives), { clock }, PAUSABLE);
    clock.advance(HOUR);
    expect(await world.hearOut()).toEqual([
      'E5 PAUSED→RUNNING timeout',
      'task_failed timeout',
      'E6 RUNNING→FAILED timeout',
      'E7 closed FAILED timeout',
    ]);
    expect(lives).toHaveLength(1);
  });
});

describeOnStacks('a callee that is killed while a caller keeps a session paused', (stack) => {
  verifies(['pause/1', 'V-16'], 'continues it when the caller says so, and not before', async () => {
    await using world = await World.create(stack());
    const { transportUrl, storeUrl } = stack();
    const { calleeId, callerId } = world;
    const options = { transportUrl, storeUrl, calleeId, callerId, instanceId: 'one' };
    const first = new CalleeProcess(options);
    await first.ready();
    const script = [{ checkpoint: 'c' }, { hangUnlessResumed: true }, { progress: 'On again' }];
    await world.submit({ ...PAUSING, inputs: { script } });
    const { sessionId } = await world.started();
    expect(tell(await world.next())).toBe('E3 checkpoint_created');
    await askPause(world, sessionId, { mode: 'immediate' });
    expect(tell(await world.next())).toBe('E4 RUNNING→PAUSED paused_by_caller');
    await first.kill();
    await using second = new CalleeProcess(options);
    await second.ready();
    await askResume(world, sessionId);
    expect((await world.hearFresh(5)).map(tell)).toEqual([
      'E5 PAUSED→RUNNING resumed_by_caller',
      'E6 progress',
      'task_completed',
      'E7 RUNNING→COMPLETED task_completed',
      'E8 closed COMPLETED task_completed',
    ]);
  });
});

describeOnStacks('a pause that reaches another instance', (stack) => {
  verifies(['pause/1', 'HCP-125'], 'is obeyed by the one that runs the session', async () => {
    await using world = await World.create(stack());
    const { promise: blocked, resolve: tellBlocked } = Promise.withResolvers<void>();
    const { promise: decision, resolve: decide } = Promise.withResolvers<undefined>();
    const callers = ({ task }: { task: { intent: string } }) => {
      if (task.intent !== 'Block') return {};
      tellBlocked();
      return decision;
    };
    const { executor, run: begun, finish } = controlled();
    await world.serve(executor, { policy: { callers }, prefetch: 1 }, PAUSABLE);
    await world.submit(PAUSING);
    const { sessionId } = await world.started();
    const run = await begun;
    // The owner takes one command at a time, and that is this one for now: whatever follows gets to the other.
    await world.submit({ intent: 'Block' });
    await blocked;
    await world.serve(untilStopped, {}, PAUSABLE);
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    const waiting = watched(run.safePoint());
    await askResume(world, sessionId);
    expect(tell(await world.next())).toBe('E4 PAUSED→RUNNING resumed_by_caller');
    await waiting.done;
    await askPause(world, sessionId);
    // Stored for the owner by now; this is behind it in the same store.
    await askResume(world, sessionId);
    await askResume(world, sessionId);
    expect(tell(await world.next())).toBe('E5 log');
    expect(await world.store.scan('commands', 'by_callee', { where: [world.calleeId] })).toEqual([]);
    decide(undefined);
    expect(tell(await world.next())).toBe('task_rejected unauthorized');
    finish();
    expect((await world.hearOut()).at(-1)).toBe('E7 closed COMPLETED task_completed');
  });
});
