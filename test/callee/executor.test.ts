import { expect } from 'vitest';
import type { Executor, Run } from '../../callee/index.ts';
import { movesFor } from '../../session/lifecycle.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const COMPLETED = 'closed COMPLETED task_completed';

/** Serves one task that hands out its `run` and waits to be told how it ends. */
async function startTask(world: World, options: Parameters<World['serve']>[1] = {}) {
  const { promise: running, resolve: tellRun } = Promise.withResolvers<Run>();
  const { promise: ending, resolve: finish } = Promise.withResolvers<{ outputs: Record<string, unknown> }>();
  const executor: Executor = (_, run) => {
    tellRun(run);
    return ending;
  };
  const callee = await world.serve(executor, options);
  await world.submit();
  const session = await world.started();
  return { ...session, callee, run: await running, finish: () => finish({ outputs: {} }) };
}

describeOnStacks('what an executor may say', (stack) => {
  verifies(['V-86', 'HCP-115'], 'a word after the end is refused and not published', async () => {
    await using world = await World.create(stack());
    const { run, finish } = await startTask(world);
    finish();
    await world.hearOut();
    const late = [
      run.progress({ stage: 'late', message: 'Still here' }),
      run.log({ level: 'info', message: 'Still here' }),
      run.warning({ code: 'late', message: 'Still here' }),
      run.error({ code: 'late', message: 'Still here', recoverable: true }),
      run.intermediateResult({ result_type: 'late', data: { n: 1 }, is_partial: true }),
      run.checkpoint({}, { description: 'late' }),
      run.pause(),
      run.resume(),
    ];
    for (const call of late) await expect(call).rejects.toMatchObject({ code: 'session_closed' });
    await world.echo();
    expect(run.state).toBe('COMPLETED');
  });

  verifies(['V-87', 'HCP-109'], 'resuming what runs and pausing what is paused changes nothing', async () => {
    await using world = await World.create(stack());
    const { run, finish } = await startTask(world);
    await run.resume();
    await run.pause();
    await run.pause();
    expect(run.state).toBe('PAUSED');
    await run.progress({ stage: 'paused', message: 'A paused task may speak' });
    await run.resume();
    await run.resume();
    finish();
    expect(await world.hearOut()).toEqual([
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 progress',
      'E5 PAUSED→RUNNING resumed_by_callee',
      'task_completed',
      'E6 RUNNING→COMPLETED task_completed',
      `E7 ${COMPLETED}`,
    ]);
    // No executor runs in PENDING: the rule itself is what can be asked.
    for (const trigger of ['pause', 'resume'] as const) {
      expect(() => movesFor('PENDING', trigger)).toThrow(
        expect.objectContaining({ code: 'session_illegal_transition' }),
      );
    }
  });

  verifies('V-87', 'a task that ends while paused completes by way of RUNNING', async () => {
    await using world = await World.create(stack());
    const { run, finish } = await startTask(world);
    await run.pause();
    finish();
    expect(await world.hearOut()).toEqual([
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING task_completed',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      `E6 ${COMPLETED}`,
    ]);
  });

  verifies(['V-87', 'HCP-109'], 'while it is aborted a task may speak, but not pause, resume or store', async () => {
    await using world = await World.create(stack());
    const { run, sessionId, finish } = await startTask(world);
    await world.abort(sessionId);
    expect(tell(await world.next())).toBe('E3 RUNNING→ABORTING abort_requested');
    const store = () => run.checkpoint({}, { description: 'too late' });
    for (const call of [() => run.pause(), () => run.resume(), store]) {
      await expect(call()).rejects.toMatchObject({ code: 'session_illegal_transition' });
    }
    await run.log({ level: 'info', message: 'Putting things away' });
    finish();
    expect((await world.hearOut())[0]).toBe('E4 log');
  });

  verifies(['V-88', 'HCP-111'], 'a word that is invalid is refused and spends no sequence', async () => {
    await using world = await World.create(stack());
    const { run, finish } = await startTask(world);
    const wrong = [
      run.progress({ stage: 'x', percent: 150, message: 'Too much' }),
      run.progress({ stage: 'x' } as never),
      run.progress(undefined as never),
      run.log({ level: 'debug' as never, message: 'x' }),
      run.warning({ code: 7 as never, message: 'x' }),
      run.warning({ code: 'late' } as never),
      run.error({ code: 'x', message: 'x' } as never),
      run.intermediateResult({ result_type: 'x', data: { n: 10n }, is_partial: true }),
      run.checkpoint({}, { description: 7 as never }),
    ];
    for (const call of wrong) await expect(call).rejects.toMatchObject({ code: 'message_invalid' });
    const large = run.progress({ stage: 'x', message: 'x'.repeat(300_000) });
    await expect(large).rejects.toMatchObject({ code: 'message_too_large' });
    await run.progress({ stage: 'x', percent: 100, message: 'Good' });
    finish();
    const [progress, completed] = await world.hear(4);
    expect(progress && tell(progress)).toBe('E3 progress');
    // Nor does the summary know of what was refused.
    expect(completed).toMatchObject({ payload: { execution_summary: { warnings: [], checkpoints_created: 0 } } });
  });

  verifies('HCP-111', 'words that nobody waits for keep their order', async () => {
    await using world = await World.create(stack());
    await world.serve(async (_, run) => {
      for (let i = 0; i < 30; i++) void run.progress({ stage: String(i), message: 'On and on' });
      return { outputs: {} };
    });
    await world.submit();
    await world.started();
    const stages = (await world.hear(30)).map(
      (message) => (message.payload as { data?: { stage?: string } }).data?.stage,
    );
    expect(stages).toEqual(Array.from({ length: 30 }, (_, index) => String(index)));
    expect((await world.hearOut()).at(-1)).toBe(`E34 ${COMPLETED}`);
  });

  verifies('V-89', 'a task ends when its token expires, and may do nothing after that', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { run, finish } = await startTask(world, { clock, tokenLifetime: 'PT10M', maxDuration: 'PT1H' });
    clock.advance(10 * 60_000 - 1);
    expect(run.signal.aborted).toBe(false);
    clock.advance(1);
    expect(await world.hearOut()).toEqual([
      'task_failed timeout',
      'E3 RUNNING→FAILED timeout',
      'E4 closed FAILED timeout',
    ]);
    await expect(run.resume()).rejects.toMatchObject({ code: 'session_closed' });
    await expect(run.checkpoint({}, { description: 'late' })).rejects.toMatchObject({ code: 'session_closed' });
    finish();
    await world.echo();
  });

  verifies(
    ['V-09', 'HCP-120'],
    'a task that resumes at the very moment of its deadline fails all the same',
    async () => {
      await using world = await World.create(stack());
      const clock = new ManualClock();
      const { run, finish } = await startTask(world, { clock, maxDuration: 'PT1S' });
      await run.pause();
      clock.advance(1000);
      await expect(run.resume()).rejects.toMatchObject({ code: 'session_closed' });
      expect((await world.hearOut()).slice(-3)).toEqual([
        'task_failed timeout',
        'E5 RUNNING→FAILED timeout',
        'E6 closed FAILED timeout',
      ]);
      finish();
    },
  );

  verifies('HCP-121', 'a task that was suspended for idleness may speak while it is aborted', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { run, sessionId, finish } = await startTask(world, { clock, idleTimeout: 'PT1M', onIdle: 'suspend' });
    clock.advance(60_000);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED idle_timeout');
    await world.abort(sessionId);
    expect(tell(await world.next())).toBe('E4 PAUSED→ABORTING abort_requested');
    await run.log({ level: 'info', message: 'Putting things away' });
    finish();
    expect((await world.hearOut())[0]).toBe('E5 log');
  });

  verifies(['V-91', 'HCP-014'], 'no log line holds a session token, whatever becomes of the task', async () => {
    await using world = await World.create(stack());
    const executor: Executor = async (task, run) => {
      const { inputs } = task;
      await run.warning({ code: 'door_open', message: 'The door is open' });
      if (inputs.end === 'throw') throw new Error('The furnace is cold');
      if (inputs.end === 'unsayable') throw new Error('x'.repeat(300_000));
      if (inputs.end === 'hand over') await run.checkpoint({ done: 1 }, { description: 'after one' });
      if (inputs.end === 'abort' || (inputs.end === 'hand over' && !run.resumedFrom)) {
        run.onCleanup(() => {
          throw new Error('The valve is stuck');
        });
        return untilStopped(task, run);
      }
      return { outputs: inputs.end === 'invalid' ? (7 as never) : {} };
    };
    const first = await world.serve(executor);
    const tokens: string[] = [];
    for (const end of ['return', 'throw', 'unsayable', 'invalid', 'abort', 'hand over']) {
      const messageId = await world.submit({ inputs: { end } });
      const { sessionId, token } = await world.started();
      tokens.push(token);
      if (end === 'abort') await world.abort(sessionId, { session_token: token });
      if (end === 'hand over') {
        await world.hear(2);
        await first.close();
        await world.serve(executor);
      }
      await world.hearOut();
      await world.submit({ inputs: { end } }, messageId);
      expect(tell(await world.next())).toBe('task_accepted');
    }
    await world.echo();
    expect(new Set(tokens).size).toBe(6);
    expect(world.lines.length).toBeGreaterThan(6);
    for (const token of tokens) expect(world.lines.filter((line) => line.includes(token))).toEqual([]);
  });
});

describeOnStacks('why an executor is told to stop', (stack) => {
  verifies('HCP-122', 'by abort: the session is over for it', async () => {
    await using world = await World.create(stack());
    const { run, sessionId, finish } = await startTask(world);
    expect(run.signal.aborted).toBe(false);
    await world.abort(sessionId);
    await world.next();
    expect(run.signal.reason).toMatchObject({ code: 'session_closed', message: expect.stringContaining('aborted') });
    finish();
  });

  verifies('HCP-120', 'by time-out: the session has failed', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { run, finish } = await startTask(world, { clock, maxDuration: 'PT1S' });
    clock.advance(1000);
    await world.hearOut();
    expect(run.signal.reason).toMatchObject({ code: 'session_closed', message: expect.stringContaining('timeout') });
    finish();
  });

  verifies('HCP-016', 'by a callee that closes: the session goes on elsewhere', async () => {
    await using world = await World.create(stack());
    const { run, callee } = await startTask(world);
    await run.checkpoint({ done: 1 }, { description: 'after one' });
    await callee.close();
    expect(run.signal.reason).toMatchObject({ code: 'session_handed_over' });
    await expect(run.progress({ stage: 'x', message: 'Still here' })).rejects.toMatchObject({
      code: 'session_handed_over',
    });
  });
});
