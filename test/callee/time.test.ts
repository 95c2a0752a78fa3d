import { expect } from 'vitest';
import type { Executor, Run } from '../../callee/index.ts';
import { delay } from '../../shared/clock.ts';
import { RecordingClock } from '../support/recorder.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Works until it is told to stop. */
const untilStopped: Executor = (_, run) =>
  new Promise((_resolve, reject) => {
    const stop = () => reject(run.signal.reason);
    if (run.signal.aborted) stop();
    run.signal.addEventListener('abort', stop);
  });

/** Hands its `run` to the test and works until it is told to stop. */
function remoteControlled(): { readonly executor: Executor; readonly run: Promise<Run> } {
  const { promise, resolve } = Promise.withResolvers<Run>();
  return {
    run: promise,
    executor: (task, run) => {
      resolve(run);
      return untilStopped(task, run);
    },
  };
}

/** Stores a checkpoint first, so that the session can go on elsewhere. */
function checkpointed(lives: string[]): Executor {
  return async (task, run) => {
    lives.push(run.state);
    if (run.resumedFrom === undefined) await run.checkpoint({ done: 1 }, { description: 'after one' });
    return untilStopped(task, run);
  };
}

async function deadlineOf(world: World, sessionId: string): Promise<unknown> {
  return (await world.store.get('sessions', [sessionId]))?.deadline_at;
}

/** How long the session says it took. */
async function durationOfFailure(world: World): Promise<unknown> {
  const message = await world.next();
  expect(tell(message)).toBe('task_failed timeout');
  return message.type === 'task_failed' && message.payload.execution_summary?.duration;
}

describeOnStacks('the time a session may take', (stack) => {
  verifies('HCP-120', 'three days pass in a moment, and the task completes in time', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const stepMs = 90 * MINUTE;
    await world.serve(
      async (_, run) => {
        for (let step = 1; step < 48; step++) {
          await delay(clock, stepMs, run.signal);
          await run.progress({ stage: 'waiting', message: `${step * 1.5} h` });
        }
        return { outputs: {} };
      },
      { clock, maxDuration: 'P30D' },
    );
    await world.submit({ constraints: { max_duration: 'PT72H' } });
    await world.started();
    for (let step = 1; step < 48; step++) {
      await clock.asked(stepMs, step);
      clock.advance(stepMs);
      expect(tell(await world.next())).toBe(`E${step + 2} progress`);
    }
    expect(await world.next()).toMatchObject({
      type: 'task_completed',
      payload: { execution_summary: { duration: 'P2DT22H30M' } },
    });
  });

  verifies('HCP-120', 'a restart gives no more time', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const lives: string[] = [];
    const first = await world.serve(checkpointed(lives), { clock });
    await world.submit({ constraints: { max_duration: 'PT1H' } });
    const { sessionId } = await world.started();
    expect(tell(await world.next())).toBe('E3 checkpoint_created');
    const deadline = await deadlineOf(world, sessionId);
    clock.advance(40 * MINUTE);
    await first.close();
    await world.serve(checkpointed(lives), { clock });
    expect((await world.hear(2)).map(tell)).toEqual([
      'E4 RUNNING→PAUSED callee_restarted',
      'E5 PAUSED→RUNNING recovered_from_checkpoint',
    ]);
    expect(await deadlineOf(world, sessionId)).toBe(deadline);
    expect(lives).toEqual(['RUNNING', 'RUNNING']);
    clock.advance(20 * MINUTE - 1);
    clock.advance(1);
    expect(await durationOfFailure(world)).toBe('PT1H');
    expect(await world.hearOut()).toEqual(['E6 RUNNING→FAILED timeout', 'E7 closed FAILED timeout']);
  });

  verifies('HCP-120', 'what is found past its deadline after a restart ends, and none of its code runs', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const lives: string[] = [];
    const first = await world.serve(checkpointed(lives), { clock });
    await world.submit({ constraints: { max_duration: 'PT1H' } });
    await world.started();
    await world.next();
    await first.close();
    clock.advance(2 * HOUR);
    await world.serve(checkpointed(lives), { clock });
    clock.advance(0);
    expect(await world.hearOut()).toEqual([
      'E4 RUNNING→PAUSED callee_restarted',
      'E5 PAUSED→RUNNING timeout',
      'task_failed timeout',
      'E6 RUNNING→FAILED timeout',
      'E7 closed FAILED timeout',
    ]);
    expect(lives).toHaveLength(1);
  });

  verifies(['V-09', 'HCP-120'], 'a deadline counts although the task resumes at that very moment', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const { executor, run } = remoteControlled();
    await world.serve(executor, { clock });
    await world.submit({ constraints: { max_duration: 'PT1H' } });
    await world.started();
    await (await run).pause();
    await world.next();
    const control = await run;
    clock.advance(HOUR);
    await expect(control.resume()).rejects.toMatchObject({ code: 'session_closed' });
    expect(await world.hearOut()).toEqual([
      'E4 PAUSED→RUNNING timeout',
      'task_failed timeout',
      'E5 RUNNING→FAILED timeout',
      'E6 closed FAILED timeout',
    ]);
  });

  verifies('V-89', 'a session ends with its token, if that is the first to expire', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    await world.serve(untilStopped, { clock, tokenLifetime: 'PT30M' });
    await world.submit({ constraints: { max_duration: 'PT1H' } });
    await world.started();
    clock.advance(30 * MINUTE - 1);
    clock.advance(1);
    expect(await durationOfFailure(world)).toBe('PT30M');
    expect(await world.hearOut()).toEqual(['E3 RUNNING→FAILED timeout', 'E4 closed FAILED timeout']);
  });

  verifies('V-89', 'a token that lives longer than the task may changes nothing', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    await world.serve(untilStopped, { clock, tokenLifetime: 'PT3H' });
    await world.submit({ constraints: { max_duration: 'PT1H' } });
    await world.started();
    clock.advance(HOUR);
    expect(await durationOfFailure(world)).toBe('PT1H');
  });

  verifies(['HCP-122', 'HCP-123'], 'an abort is over after its time, whatever the executor does', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const { promise: stopped, resolve: tellStopped } = Promise.withResolvers<void>();
    await world.serve(
      (_, run) => {
        run.signal.addEventListener('abort', () => tellStopped());
        return new Promise(() => {});
      },
      { clock, abortTimeout: 'PT2M' },
    );
    await world.submit();
    const { sessionId } = await world.started();
    await world.abort(sessionId);
    expect(tell(await world.next())).toBe('E3 RUNNING→ABORTING abort_requested');
    await stopped;
    clock.advance(2 * MINUTE - 1);
    clock.advance(1);
    expect(await world.hearOut()).toEqual([
      'E4 warning',
      'E5 ABORTING→ABORTED abort_timeout',
      'E6 closed ABORTED abort_timeout',
    ]);
  });
});

describeOnStacks('a session that says nothing', (stack) => {
  verifies('HCP-121', 'fails when it is idle for too long, counted from its last word', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const { executor, run } = remoteControlled();
    await world.serve(executor, { clock, idleTimeout: 'PT10M' });
    await world.submit();
    await world.started();
    clock.advance(9 * MINUTE);
    await (await run).progress({ stage: 'alive', message: 'still here' });
    clock.advance(10 * MINUTE - 1);
    clock.advance(1);
    expect(tell(await world.next())).toBe('E3 progress');
    expect(await durationOfFailure(world)).toBe('PT19M');
    expect(await world.hearOut()).toEqual(['E4 RUNNING→FAILED idle_timeout', 'E5 closed FAILED idle_timeout']);
  });

  verifies('HCP-121', 'is not idle when it pauses, only after that', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const { executor, run } = remoteControlled();
    await world.serve(executor, { clock, idleTimeout: 'PT10M', onIdle: 'suspend', idleGrace: 'PT5M' });
    await world.submit();
    await world.started();
    clock.advance(9 * MINUTE);
    await (await run).pause();
    clock.advance(10 * MINUTE - 1);
    clock.advance(1);
    expect((await world.hear(2)).map(tell)).toEqual([
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING idle_timeout',
    ]);
    expect(await durationOfFailure(world)).toBe('PT19M');
  });

  verifies('HCP-121', 'is suspended, if so told, and fails after the grace time', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    await world.serve(untilStopped, { clock, idleTimeout: 'PT10M', onIdle: 'suspend', idleGrace: 'PT5M' });
    await world.submit();
    await world.started();
    clock.advance(10 * MINUTE);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED idle_timeout');
    clock.advance(5 * MINUTE - 1);
    clock.advance(1);
    expect(tell(await world.next())).toBe('E4 PAUSED→RUNNING idle_timeout');
    expect(await durationOfFailure(world)).toBe('PT15M');
    expect(await world.hearOut()).toEqual(['E5 RUNNING→FAILED idle_timeout', 'E6 closed FAILED idle_timeout']);
  });

  verifies('HCP-121', 'resumes by its next word, in the order of its words, and is idle again later', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const { executor, run } = remoteControlled();
    // The same time for both: one must not be taken for the other.
    await world.serve(executor, { clock, idleTimeout: 'PT10M', onIdle: 'suspend', idleGrace: 'PT10M' });
    await world.submit();
    const { sessionId } = await world.started();
    clock.advance(10 * MINUTE);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED idle_timeout');
    clock.advance(9 * MINUTE);
    const { progress, log } = await run;
    await Promise.all([
      progress({ stage: 'alive', message: 'again' }),
      log({ level: 'info', message: 'and more' }),
      progress({ stage: 'alive', message: 'and more' }),
    ]);
    expect((await world.hear(4)).map(tell)).toEqual([
      'E4 PAUSED→RUNNING resumed_by_callee',
      'E5 progress',
      'E6 log',
      'E7 progress',
    ]);
    clock.advance(10 * MINUTE);
    expect(tell(await world.next())).toBe('E8 RUNNING→PAUSED idle_timeout');
    await world.abort(sessionId);
    await world.hearOut();
  });

  verifies('HCP-121', 'completes out of its suspension', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
    await world.serve(
      async () => {
        await finish;
        return { outputs: {} };
      },
      { clock, idleTimeout: 'PT10M', onIdle: 'suspend' },
    );
    await world.submit();
    await world.started();
    clock.advance(10 * MINUTE);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED idle_timeout');
    tellFinish();
    expect(await world.hearOut()).toEqual([
      'E4 PAUSED→RUNNING task_completed',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      'E6 closed COMPLETED task_completed',
    ]);
  });

  verifies('HCP-121', 'stays paused when it then asks for the pause itself', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const { executor, run } = remoteControlled();
    await world.serve(executor, { clock, idleTimeout: 'PT10M', onIdle: 'suspend' });
    await world.submit();
    const { sessionId } = await world.started();
    clock.advance(10 * MINUTE);
    await world.next();
    const { pause, progress, resume } = await run;
    await pause();
    await progress({ stage: 'paused', message: 'on purpose' });
    await resume();
    expect((await world.hear(2)).map(tell)).toEqual(['E4 progress', 'E5 PAUSED→RUNNING resumed_by_callee']);
    await world.abort(sessionId);
    await world.hearOut();
  });
});
