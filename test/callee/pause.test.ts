import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { readAudit } from '../../callee/index.ts';
import type { Store, Write } from '../../shared/store/store.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { askPause, askResume, controlled, PAUSABLE, PAUSING, watched } from '../support/pausing.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { type Heard, tell, World } from '../support/world.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const NOW = { mode: 'immediate' } as const;

/** A running session that its caller can pause. */
async function running(world: World, options: Parameters<World['serve']>[1] = {}, payload = {}) {
  const task = controlled();
  const callee = await world.serve(task.executor, options, PAUSABLE);
  await world.submit({ ...PAUSING, ...payload });
  const started = await world.started();
  return { ...task, ...started, callee, run: await task.run };
}

/** What a `log` event says. */
function wordsOf(message: Heard): unknown {
  expect(tell(message)).toMatch(/^E\d+ log$/);
  return message.type === 'event' && message.payload.data.message;
}

describeOnStacks('a caller that pauses its session at once', (stack) => {
  verifies(['pause/1', 'P6', 'V-04'], 'has the work wait at its next step until it resumes it', async () => {
    await using world = await World.create(stack());
    const { sessionId, token, run, finish } = await running(world);
    await askPause(world, sessionId, { ...NOW, session_token: token });
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    const waiting = [watched(run.safePoint()), watched(run.guard.act('heat', { temperature: 80 }))];
    await run.progress({ stage: 'resting', message: 'What was begun is told' });
    expect(tell(await world.next())).toBe('E4 progress');
    await world.echo();
    expect(waiting.map(({ isDone }) => isDone())).toEqual([false, false]);
    expect(run.state).toBe('PAUSED');
    await askResume(world, sessionId, { session_token: token });
    expect(tell(await world.next())).toBe('E5 PAUSED→RUNNING resumed_by_caller');
    await Promise.all(waiting.map(({ done }) => done));
    finish();
    expect(await world.hearOut()).toEqual([
      'task_completed',
      'E6 RUNNING→COMPLETED task_completed',
      'E7 closed COMPLETED task_completed',
    ]);
  });

  verifies('pause/1', 'is the only one who can resume it', async () => {
    await using world = await World.create(stack());
    const { sessionId, run, finish } = await running(world);
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    await expect(run.resume()).rejects.toMatchObject({ code: 'session_illegal_transition' });
    await run.pause();
    await expect(run.resume()).rejects.toMatchObject({ code: 'session_illegal_transition' });
    await world.echo();
    await askResume(world, sessionId);
    expect(tell(await world.next())).toBe('E4 PAUSED→RUNNING resumed_by_caller');
    finish();
    await world.hearOut();
  });

  verifies('pause/1', 'gets the result of work that ends all the same', async () => {
    await using world = await World.create(stack());
    const { promise: end, resolve: letEnd } = Promise.withResolvers<void>();
    await world.serve(
      async ({ inputs }) => {
        await end;
        if (inputs.fail) throw new Error('Too hot');
        return { outputs: {} };
      },
      {},
      PAUSABLE,
    );
    const sessions: string[] = [];
    for (const inputs of [{}, { fail: true }]) {
      await world.submit({ ...PAUSING, inputs });
      sessions.push((await world.started()).sessionId);
    }
    for (const sessionId of sessions) {
      await askPause(world, sessionId, NOW);
      expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    }
    letEnd();
    const heard = await world.hear(8);
    const [completed, failed] = sessions.map((id) => heard.filter(({ session_id }) => session_id === id).map(tell));
    expect(completed).toEqual([
      'E4 PAUSED→RUNNING task_completed',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      'E6 closed COMPLETED task_completed',
    ]);
    expect(failed).toEqual([
      'E4 PAUSED→RUNNING execution_error',
      'task_failed execution_error',
      'E5 RUNNING→FAILED execution_error',
      'E6 closed FAILED execution_error',
    ]);
  });

  verifies(['pause/1', 'V-07'], 'can abort it; what waited is told to stop', async () => {
    await using world = await World.create(stack());
    const { sessionId, run } = await running(world);
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    const safePoint = run.safePoint();
    const action = run.guard.act('heat');
    const stopped = Promise.all([
      expect(safePoint).rejects.toMatchObject({ code: 'session_closed' }),
      expect(action).rejects.toMatchObject({ code: 'session_closed' }),
    ]);
    await world.abort(sessionId);
    await stopped;
    expect(await world.hearOut()).toEqual([
      'E4 PAUSED→ABORTING abort_requested',
      'E5 ABORTING→ABORTED cleanup_complete',
      'E6 closed ABORTED cleanup_complete',
    ]);
  });

  verifies(['pause/1', 'V-09', 'HCP-120'], 'gets no more time by it', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { sessionId, run } = await running(world, { clock }, { constraints: { max_duration: 'PT1H' } });
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    const stopped = expect(run.safePoint()).rejects.toMatchObject({ code: 'session_closed' });
    clock.advance(60 * MINUTE);
    await stopped;
    expect(await world.hearOut()).toEqual([
      'E4 PAUSED→RUNNING timeout',
      'task_failed timeout',
      'E5 RUNNING→FAILED timeout',
      'E6 closed FAILED timeout',
    ]);
  });

  verifies(['pause/1', 'HCP-121'], 'does not make it idle; its idle time begins when it goes on', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { sessionId } = await running(world, { clock, idleTimeout: 'PT10M' });
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    clock.advance(60 * MINUTE);
    await world.echo();
    await askResume(world, sessionId);
    expect(tell(await world.next())).toBe('E4 PAUSED→RUNNING resumed_by_caller');
    clock.advance(10 * MINUTE - 1);
    await world.echo();
    clock.advance(1);
    expect((await world.hearOut()).at(-1)).toBe('E6 closed FAILED idle_timeout');
  });

  verifies('pause/1', 'may change its mind faster than it is obeyed: its last word counts', async () => {
    await using world = await World.create(stack());
    const { sessionId, run, finish } = await running(world);
    const words = [askPause, askResume, askPause, askResume, askPause] as const;
    await Promise.all(words.map((ask) => (ask === askPause ? ask(world, sessionId, NOW) : ask(world, sessionId))));
    expect((await world.hear(5)).map(tell)).toEqual([
      'E3 RUNNING→PAUSED paused_by_caller',
      'E4 PAUSED→RUNNING resumed_by_caller',
      'E5 RUNNING→PAUSED paused_by_caller',
      'E6 PAUSED→RUNNING resumed_by_caller',
      'E7 RUNNING→PAUSED paused_by_caller',
    ]);
    const waiting = watched(run.safePoint());
    await world.echo();
    expect(waiting.isDone()).toBe(false);
    await askResume(world, sessionId);
    await waiting.done;
    finish();
    expect((await world.hearOut())[0]).toBe('E8 PAUSED→RUNNING resumed_by_caller');
  });

  verifies('pause/1', 'may say everything twice', async () => {
    await using world = await World.create(stack());
    const { sessionId, run, finish } = await running(world);
    const [pause, resume] = [{ messageId: randomUUID() }, { messageId: randomUUID() }];
    for (let i = 0; i < 3; i++) await askPause(world, sessionId, NOW, pause);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    await world.echo();
    for (let i = 0; i < 2; i++) await askResume(world, sessionId, {}, resume);
    const [resumed, ignored] = await world.hear(2);
    expect(tell(resumed as Heard)).toBe('E4 PAUSED→RUNNING resumed_by_caller');
    expect(wordsOf(ignored as Heard)).toBe('x-resume was ignored: the session is RUNNING');
    await run.safePoint();
    finish();
    expect((await world.hearOut()).at(-1)).toBe('E7 closed COMPLETED task_completed');
  });
});

describeOnStacks('a caller that lets its session drain first', (stack) => {
  verifies(['pause/1', 'P6'], 'has it paused at its next safe point, not before', async () => {
    await using world = await World.create(stack());
    const { sessionId, run, finish } = await running(world);
    await askPause(world, sessionId);
    await world.echo();
    await run.progress({ stage: 'draining', message: 'Almost there' });
    expect([run.state, tell(await world.next())]).toEqual(['RUNNING', 'E3 progress']);
    const waiting = watched(run.safePoint());
    expect(tell(await world.next())).toBe('E4 RUNNING→PAUSED paused_by_caller');
    await world.echo();
    expect([run.state, waiting.isDone()]).toEqual(['PAUSED', false]);
    await askResume(world, sessionId);
    expect(tell(await world.next())).toBe('E5 PAUSED→RUNNING resumed_by_caller');
    await waiting.done;
    await run.safePoint();
    finish();
    expect((await world.hearOut()).at(-1)).toBe('E7 closed COMPLETED task_completed');
  });

  verifies('pause/1', 'has it paused before its next action', async () => {
    await using world = await World.create(stack());
    const { sessionId, run, finish } = await running(world);
    await askPause(world, sessionId, { mode: 'drain', drain_timeout: 'PT1H' });
    await world.echo();
    const action = watched(run.guard.act('heat'));
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    await world.echo();
    expect(action.isDone()).toBe(false);
    await askResume(world, sessionId);
    await action.done;
    expect(tell(await world.next())).toBe('E4 PAUSED→RUNNING resumed_by_caller');
    finish();
    await world.hearOut();
  });

  verifies('pause/1', 'has it paused when the time is over, by its own measure or by ours', async () => {
    for (const [payload, drainMs] of [
      [{ drain_timeout: 'PT30S' }, 30 * SECOND],
      [{}, MINUTE],
    ] as const) {
      await using world = await World.create(stack());
      const clock = new ManualClock();
      const { sessionId, run } = await running(world, { clock });
      await askPause(world, sessionId, payload);
      await world.echo();
      clock.advance(drainMs - 1);
      await world.echo();
      clock.advance(1);
      expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
      const waiting = watched(run.safePoint());
      await askResume(world, sessionId);
      await waiting.done;
      await world.abort(sessionId);
      await world.hearOut();
    }
  });

  verifies('pause/1', 'may think better of it', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { sessionId, run, finish } = await running(world, { clock });
    await askPause(world, sessionId);
    await world.echo();
    await askResume(world, sessionId);
    await world.echo();
    await run.safePoint();
    clock.advance(2 * MINUTE);
    await run.guard.act('heat');
    finish();
    expect(await world.hearOut()).toEqual([
      'task_completed',
      'E3 RUNNING→COMPLETED task_completed',
      'E4 closed COMPLETED task_completed',
    ]);
  });

  verifies('pause/1', 'may think better of it while the work is at a safe point', async () => {
    await using world = await World.create(stack());
    const { promise: reached, resolve: tellReached } = Promise.withResolvers<void>();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const forgets = (write: Write) => 'patch' in write && write.set.paused_by === null;
    const store: Store = {
      ...world.store,
      commit: async (writes) => {
        if (writes.some(forgets)) {
          tellReached();
          await released;
        }
        return world.store.commit(writes);
      },
    };
    const { sessionId, run, finish } = await running(world, { store });
    await askPause(world, sessionId);
    await world.echo();
    await askResume(world, sessionId);
    await reached;
    await run.safePoint();
    release();
    await world.echo();
    expect(run.state).toBe('RUNNING');
    finish();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies(['pause/1', 'P6'], 'is told when the work rests by its own wish instead', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { sessionId, run, finish } = await running(world, { clock });
    await askPause(world, sessionId);
    await world.echo();
    await run.pause();
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_callee');
    clock.advance(MINUTE);
    expect(wordsOf(await world.next())).toBe('x-pause was ignored: the session is PAUSED');
    await run.resume();
    await run.safePoint();
    finish();
    expect((await world.hearOut()).slice(0, 2)).toEqual(['E5 PAUSED→RUNNING resumed_by_callee', 'task_completed']);
  });

  verifies('pause/1', 'has it paused also when the work rested by its own wish before', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { sessionId, run } = await running(world, { clock });
    await askPause(world, sessionId);
    await world.echo();
    await run.pause();
    await run.resume();
    expect((await world.store.get('sessions', [sessionId]))?.paused_by).toBe('caller_soon');
    const waiting = watched(run.safePoint());
    expect((await world.hear(3)).map(tell).at(-1)).toBe('E5 RUNNING→PAUSED paused_by_caller');
    await askResume(world, sessionId);
    await waiting.done;
    await world.abort(sessionId);
    await world.hearOut();
  });

  verifies('pause/1', 'may be in more of a hurry after all', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { sessionId, finish } = await running(world, { clock });
    await askPause(world, sessionId);
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    clock.advance(2 * MINUTE);
    await askResume(world, sessionId);
    expect(tell(await world.next())).toBe('E4 PAUSED→RUNNING resumed_by_caller');
    finish();
    expect((await world.hearOut()).at(-1)).toBe('E6 closed COMPLETED task_completed');
  });

  verifies('pause/1', 'gets the result of work that ends before, and nothing is left to happen', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { sessionId, finish } = await running(world, { clock });
    await askPause(world, sessionId);
    await world.echo();
    finish();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    clock.advance(2 * MINUTE);
    await world.echo();
    expect(world.logged(/"level":"error"/)).toEqual([]);
  });
});

describeOnStacks('a pause that does not fit', (stack) => {
  verifies(['pause/1', 'P6'], 'is told in a log event, once for each command', async () => {
    await using world = await World.create(stack());
    const { promise: cleaned, resolve: tellCleaned } = Promise.withResolvers<void>();
    const { sessionId, run } = await running(world);
    run.onCleanup(() => cleaned);
    await run.pause();
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_callee');
    await askPause(world, sessionId, NOW);
    expect(wordsOf(await world.next())).toBe('x-pause was ignored: the session is PAUSED');
    await askResume(world, sessionId);
    expect(wordsOf(await world.next())).toBe('x-resume was ignored: the session is PAUSED');
    await run.resume();
    expect(tell(await world.next())).toBe('E6 PAUSED→RUNNING resumed_by_callee');
    await askResume(world, sessionId);
    expect(wordsOf(await world.next())).toBe('x-resume was ignored: the session is RUNNING');
    await world.abort(sessionId);
    expect(tell(await world.next())).toBe('E8 RUNNING→ABORTING abort_requested');
    await askPause(world, sessionId);
    expect(wordsOf(await world.next())).toBe('x-pause was ignored: the session is ABORTING');
    await askResume(world, sessionId);
    expect(wordsOf(await world.next())).toBe('x-resume was ignored: the session is ABORTING');
    await world.echo();
    tellCleaned();
    expect((await world.hearOut()).at(-1)).toBe('E12 closed ABORTED cleanup_complete');
  });

  verifies(['pause/1', 'P6'], 'meets silence where there is nothing to pause, or no right to', async () => {
    await using world = await World.create(stack());
    await world.serve(async () => ({ outputs: {} }), {}, PAUSABLE);
    await world.submit(PAUSING);
    const { sessionId } = await world.started();
    await world.hearOut();
    for (const ask of [askPause, askResume]) {
      await ask(world, sessionId);
      await ask(world, randomUUID());
    }
    await world.echo();
    expect(world.logged(/"type":"x-(pause|resume)".*The session is over: ignored/)).toHaveLength(2);
    expect(world.logged(/"type":"x-(pause|resume)".*nobody knows: ignored/)).toHaveLength(2);
  });

  verifies(['pause/1', 'P9'], 'meets silence where it was not agreed', async () => {
    for (const [declaration, payload] of [
      [PAUSABLE, {}],
      [{}, { extensions: { 'pause/1': { required: false } } }],
    ] as const) {
      await using world = await World.create(stack());
      const { executor, finish, run } = controlled();
      await world.serve(executor, {}, declaration);
      await world.submit(payload);
      const { sessionId } = await world.started();
      await askPause(world, sessionId, NOW);
      await askPause(world, sessionId);
      await askResume(world, sessionId);
      await world.echo();
      expect(world.logged(/"type":"x-(pause|resume)".*not in force/)).toHaveLength(3);
      await (await run).safePoint();
      finish();
      expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    }
  });

  verifies(['pause/1', 'HCP-312'], 'of somebody else meets silence and goes on record', async () => {
    await using world = await World.create(stack());
    const { sessionId, token, run, finish } = await running(world);
    await askPause(world, sessionId, { ...NOW, session_token: `${token}x` });
    await askPause(world, sessionId, NOW, { senderId: new SecondCaller(world).callerId });
    await world.echo();
    expect(run.state).toBe('RUNNING');
    await askPause(world, sessionId, NOW);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    await askResume(world, sessionId, { session_token: 'guessed' });
    await world.echo();
    expect(run.state).toBe('PAUSED');
    const refused: string[] = [];
    for await (const { kind, body } of readAudit(world.store, world.calleeId, sessionId)) {
      if (kind === 'command_refused') refused.push(body);
    }
    expect(refused).toHaveLength(3);
    expect(refused[0]).toContain('its token is wrong');
    expect(refused[1]).toContain('another caller sent it');
    expect(refused.join('')).not.toContain(token);
    expect(world.logged(/Command refused/).join('')).not.toContain(token);
    finish();
    await world.hearOut();
  });
});
