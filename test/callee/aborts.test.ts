import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { CallerRights, Executor, Run } from '../../callee/index.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

const ENDED_WELL = [
  'E3 RUNNING→ABORTING abort_requested',
  'E4 ABORTING→ABORTED cleanup_complete',
  'E5 closed ABORTED cleanup_complete',
];

/** The id of the session of a submit that was not answered, or rejected: no message tells it. */
async function sessionOf(world: World, messageId: string): Promise<string> {
  const row = await world.store.get('answers', [world.calleeId, world.callerId, messageId]);
  return String(row?.session_id);
}

async function stateOf(world: World, sessionId: string): Promise<unknown> {
  return (await world.store.get('sessions', [sessionId]))?.state;
}

describeOnStacks('aborts', (stack) => {
  verifies(
    ['V-06', 'V-71', 'HCP-122'],
    'a running task is stopped, cleaned up after, and closed without a result',
    async () => {
      await using world = await World.create(stack());
      const clock = new ManualClock();
      const { promise: cleaning, resolve: tellCleaning } = Promise.withResolvers<unknown>();
      await world.serve(
        async (_, run) => {
          run.onCleanup(async () => {
            await new Promise<void>((resolve) => {
              clock.setTimeout(resolve, 1000);
              tellCleaning(run.signal.reason);
            });
          });
          return untilStopped(_, run);
        },
        { clock },
      );
      await world.submit();
      const { sessionId, token } = await world.started();
      await world.abort(sessionId, { session_token: token, reason: 'Changed my mind' });
      expect(tell(await world.next())).toBe('E3 RUNNING→ABORTING abort_requested');
      expect(await cleaning).toMatchObject({ code: 'session_closed' });
      await world.echo(); // not over before it is clean
      clock.advance(1000);
      expect(await world.hearOut()).toEqual(ENDED_WELL.slice(1));
      expect(await stateOf(world, sessionId)).toBe('ABORTED');
      await world.echo();
    },
  );

  verifies(['V-07', 'V-71'], 'a paused task is aborted straight from PAUSED', async () => {
    await using world = await World.create(stack());
    await world.serve(async (task, run) => {
      await run.pause();
      return untilStopped(task, run);
    });
    await world.submit();
    const { sessionId, token } = await world.started();
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_callee');
    await world.abort(sessionId, { session_token: token });
    expect(await world.hearOut()).toEqual([
      'E4 PAUSED→ABORTING abort_requested',
      'E5 ABORTING→ABORTED cleanup_complete',
      'E6 closed ABORTED cleanup_complete',
    ]);
  });

  verifies(['V-13', 'HCP-123'], 'a cleanup that never ends is cut off at the abort timeout', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    await world.serve(
      (task, run) => {
        run.onCleanup(() => new Promise(() => {}));
        return untilStopped(task, run);
      },
      { clock, abortTimeout: 'PT1S' },
    );
    await world.submit();
    const [accepted] = await world.hear(3);
    expect(accepted).toMatchObject({ payload: { constraints: { abort_timeout: 'PT1S' } } });
    await world.abort(String(accepted?.session_id));
    expect(tell(await world.next())).toBe('E3 RUNNING→ABORTING abort_requested');
    clock.advance(999);
    await world.echo();
    clock.advance(1);
    const [warning] = [await world.next()];
    expect(warning).toMatchObject({ payload: { event_type: 'warning', sequence: 4, data: { code: 'abort_timeout' } } });
    expect(await world.hearOut()).toEqual(['E5 ABORTING→ABORTED abort_timeout', 'E6 closed ABORTED abort_timeout']);
  });

  verifies(['V-13', 'HCP-123'], 'an executor that does not listen is cut off too, and says nothing more', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { promise: run, resolve: tellRun } = Promise.withResolvers<Run>();
    const { promise: wakeUp, resolve: tellWakeUp } = Promise.withResolvers<void>();
    await world.serve(
      async (_, given) => {
        tellRun(given);
        await wakeUp;
        return { outputs: { late: true } };
      },
      { clock, abortTimeout: 'PT1S' },
    );
    await world.submit();
    const { sessionId } = await world.started();
    await world.abort(sessionId);
    await world.next();
    clock.advance(1000);
    expect((await world.hearOut()).at(-1)).toBe('E6 closed ABORTED abort_timeout');
    tellWakeUp();
    await expect((await run).progress({ stage: 'late', message: 'Still here' })).rejects.toMatchObject({
      code: 'session_closed',
    });
    await world.echo();
    expect(await stateOf(world, sessionId)).toBe('ABORTED');
  });

  verifies('V-14', 'a cleanup that throws is told, and the session is closed all the same', async () => {
    await using world = await World.create(stack());
    const steps: string[] = [];
    await world.serve((task, run) => {
      run.onCleanup(() => void steps.push('first given'));
      run.onCleanup(() => {
        throw new Error('The valve is stuck');
      });
      run.onCleanup(() => void steps.push('last given'));
      return untilStopped(task, run);
    });
    await world.submit();
    const { sessionId } = await world.started();
    await world.abort(sessionId);
    const heard = await world.hear(4);
    expect(heard.map(tell)).toEqual([
      'E3 RUNNING→ABORTING abort_requested',
      'E4 error',
      'E5 ABORTING→ABORTED cleanup_failed',
      'E6 closed ABORTED cleanup_failed',
    ]);
    expect(heard[1]).toMatchObject({
      payload: { data: { code: 'cleanup_failed', message: 'The valve is stuck', recoverable: false } },
    });
    expect(steps).toEqual(['last given', 'first given']); // one that fails keeps no other from being done
  });

  verifies('V-14', 'the cleanup of a capability is run too, last, and may speak', async () => {
    await using world = await World.create(stack());
    const steps: string[] = [];
    const callee = await world.callee();
    callee.capability(
      TASK,
      (task, run) => {
        run.onCleanup(() => void steps.push('onCleanup'));
        return untilStopped(task, run);
      },
      {
        cleanup: async (_, run) => {
          steps.push('cleanup');
          await run.log({ level: 'info', message: `Cleaning up in ${run.state}` });
        },
      },
    );
    await callee.start();
    await world.submit();
    const { sessionId } = await world.started();
    await world.abort(sessionId);
    expect(await world.hearOut()).toEqual([
      'E3 RUNNING→ABORTING abort_requested',
      'E4 log',
      'E5 ABORTING→ABORTED cleanup_complete',
      'E6 closed ABORTED cleanup_complete',
    ]);
    expect(steps).toEqual(['onCleanup', 'cleanup']);
  });

  const lateEnds: readonly [name: string, end: () => { outputs: object }][] = [
    ['succeeds', () => ({ outputs: { ok: true } })],
    [
      'fails',
      () => {
        throw new Error('Too late to matter');
      },
    ],
    ['returns nonsense', () => undefined as never],
  ];
  for (const [name, end] of lateEnds) {
    verifies(['V-15', 'HCP-110'], `work that ${name} after the abort has no result`, async () => {
      await using world = await World.create(stack());
      await world.serve(async (task, run) => {
        await untilStopped(task, run).catch(() => {});
        return end() as { outputs: Record<string, unknown> };
      });
      await world.submit();
      const { sessionId } = await world.started();
      await world.abort(sessionId);
      expect(await world.hearOut()).toEqual(ENDED_WELL);
      await world.echo();
    });
  }

  verifies('V-70', 'an abort before the decision stops nothing', async () => {
    await using world = await World.create(stack());
    const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>();
    const { promise: decision, resolve: decide } = Promise.withResolvers<CallerRights | undefined>();
    const callers = ({ task }: { task: { capability: string } }) => {
      if (task.capability !== 'test.task') return undefined;
      tellAsked();
      return decision;
    };
    await world.serve(async () => ({ outputs: {} }), { policy: { callers } });
    const messageId = await world.submit();
    await asked;
    await world.abort(await sessionOf(world, messageId));
    await world.echo();
    expect(world.logged(/"state":"PENDING".*nothing to stop/)).toHaveLength(1);
    decide({});
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies(['V-72', 'HCP-124'], 'aborting twice cleans up once', async () => {
    await using world = await World.create(stack());
    const { promise: cleaned, resolve: tellCleaned } = Promise.withResolvers<void>();
    let cleanups = 0;
    await world.serve((task, run) => {
      run.onCleanup(() => {
        cleanups++;
        return cleaned;
      });
      return untilStopped(task, run);
    });
    await world.submit();
    const { sessionId, token } = await world.started();
    await world.abort(sessionId, { session_token: token });
    expect(tell(await world.next())).toBe(ENDED_WELL[0]);
    await world.abort(sessionId, { session_token: token });
    await world.abort(sessionId);
    await world.echo();
    tellCleaned();
    expect(await world.hearOut()).toEqual(ENDED_WELL.slice(1));
    expect(cleanups).toBe(1);
  });

  verifies(['V-73', 'HCP-124'], 'an abort of a session that is over changes nothing', async () => {
    await using world = await World.create(stack());
    await world.serve(async (task, run) => {
      if (task.inputs.end === 'FAILED') throw new Error('As asked');
      return task.inputs.end === 'ABORTED' ? untilStopped(task, run) : { outputs: {} };
    });
    for (const end of ['COMPLETED', 'FAILED', 'ABORTED']) {
      await world.submit({ inputs: { end } });
      const { sessionId, token } = await world.started();
      if (end === 'ABORTED') await world.abort(sessionId);
      await world.hearOut();
      await world.abort(sessionId, { session_token: token });
      await world.echo();
      expect(await stateOf(world, sessionId)).toBe(end);
    }
    const messageId = await world.submit({ capability: 'test.unknown' });
    await world.next();
    const rejected = await sessionOf(world, messageId);
    await world.abort(rejected);
    await world.echo();
    expect(await stateOf(world, rejected)).toBe('REJECTED');
    expect(world.logged(/nothing to stop/)).toHaveLength(4);
  });

  verifies(['V-74', 'HCP-124'], 'an abort of a session nobody knows is ignored', async () => {
    await using world = await World.create(stack());
    await world.serve(untilStopped);
    await world.abort(randomUUID(), { session_token: 'whatever' });
    await world.echo();
    expect(world.logged(/"level":"warn".*nobody knows/)).toHaveLength(1);
  });

  verifies(['V-80', 'HCP-125'], 'an abort behind twenty submits does not wait for a task', async () => {
    await using world = await World.create(stack());
    const { promise: finish, resolve: tellFinish } = Promise.withResolvers<{ outputs: object }>();
    await world.serve(async (task, run) => {
      if (task.inputs.first) return untilStopped(task, run);
      await finish;
      return { outputs: {} };
    });
    await world.submit({ inputs: { first: true } });
    const { sessionId } = await world.started();
    for (let i = 0; i < 20; i++) await world.submit();
    await world.abort(sessionId);
    const ofFirst: string[] = [];
    while (ofFirst.length < ENDED_WELL.length) {
      const message = await world.next();
      if (message.session_id === sessionId) ofFirst.push(tell(message));
    }
    expect(ofFirst).toEqual(ENDED_WELL);
    tellFinish({ outputs: {} });
  });

  verifies('V-81', 'an abort sent while the callee is down is obeyed after recovery', async () => {
    await using world = await World.create(stack());
    const executor: Executor = async (task, run) => {
      if (!run.resumedFrom) await run.checkpoint({ done: 1 }, { description: 'after one' });
      return untilStopped(task, run);
    };
    const first = await world.serve(executor);
    await world.submit();
    const { sessionId, token } = await world.started();
    expect(tell(await world.next())).toBe('E3 checkpoint_created');
    await first.close();
    await world.abort(sessionId, { session_token: token });
    await world.serve(executor);
    expect(await world.hearOut()).toEqual([
      'E4 RUNNING→PAUSED callee_restarted',
      'E5 PAUSED→RUNNING recovered_from_checkpoint',
      'E6 RUNNING→ABORTING abort_requested',
      'E7 ABORTING→ABORTED cleanup_complete',
      'E8 closed ABORTED cleanup_complete',
    ]);
  });
});
