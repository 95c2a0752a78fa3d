import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { CalleeOptions, Executor } from '../../callee/index.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { under } from '../support/login.ts';
import { bytes, submitObject, wireProperties } from '../support/messages.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

/** Serves one task that works until it is aborted or told to finish, and starts it. */
async function startTask(world: World, options: Partial<CalleeOptions> = {}) {
  const { promise: finished, resolve: finish } = Promise.withResolvers<{ outputs: Record<string, unknown> }>();
  const executor: Executor = (task, run) => Promise.race([finished, untilStopped(task, run)]);
  await world.serve(executor, options);
  await world.submit();
  return { ...(await world.started()), finish: () => finish({ outputs: {} }) };
}

/** Nothing was said, the refusal is on record without any secret, and the task goes on to its end. */
async function wasRefused(
  world: World,
  task: Awaited<ReturnType<typeof startTask>>,
  why: string,
  secrets: string[] = [],
) {
  await world.echo();
  const records = world.logged(/"audit":"abort_refused"/);
  expect(records).toHaveLength(1);
  expect(JSON.parse(String(records[0]))).toMatchObject({
    level: 'warn',
    session_id: task.sessionId,
    caller_id: world.callerId,
    state: 'RUNNING',
    why,
  });
  for (const secret of [task.token, ...secrets]) expect(world.lines.join('\n')).not.toContain(secret);
  task.finish();
  expect(await world.hearOut()).toEqual([
    'task_completed',
    'E3 RUNNING→COMPLETED task_completed',
    'E4 closed COMPLETED task_completed',
  ]);
}

describeOnStacks('refused aborts', (stack) => {
  verifies(['V-75', 'HCP-130'], 'an abort that names no session is dead-lettered', async () => {
    await using world = await World.create(stack());
    const task = await startTask(world);
    const abort = submitObject({}, { message_id: randomUUID(), type: 'abort', session_id: null, payload: {} });
    await world.send(bytes(abort), wireProperties({ appId: world.callerId }));
    expect(Buffer.from((await world.buried()).body).toString()).toBe(JSON.stringify(abort));
    await world.echo();
    task.finish();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies(['V-76', 'HCP-014'], 'an abort with a wrong token is refused, on record, and the task goes on', async () => {
    await using world = await World.create(stack());
    const task = await startTask(world);
    const forged = 'forged-token-0123456789';
    await world.abort(task.sessionId, { session_token: forged });
    await wasRefused(world, task, 'its token is wrong', [forged]);
  });

  verifies('V-76', 'the token of one session does not stop another', async () => {
    await using world = await World.create(stack());
    const task = await startTask(world);
    await world.submit();
    const other = await world.started();
    await world.abort(task.sessionId, { session_token: other.token });
    await world.echo();
    expect(world.logged(/"audit":"abort_refused"/)).toHaveLength(1);
    await world.abort(other.sessionId, { session_token: other.token });
    expect((await world.hearOut()).at(-1)).toBe('E5 closed ABORTED cleanup_complete');
    task.finish();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies(
    'V-77',
    'a genuine token still aborts when it has expired and the session is not yet failed for it',
    async () => {
      await using world = await World.create(stack());
      const clock = new LateClock();
      const { sessionId, token } = await startTask(world, { clock, tokenLifetime: 'PT1M' });
      clock.lateByMs = 61_000; // expired, but the timer that fails the session has not come round
      await world.abort(sessionId, { session_token: token });
      expect((await world.hearOut()).at(-1)).toBe('E5 closed ABORTED cleanup_complete');
      expect(world.logged(/"audit":"abort_refused"/)).toEqual([]);
    },
  );

  verifies(['V-77', 'D-17'], 'once failed at the expiry of its token a session has nothing left to abort', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { sessionId, token } = await startTask(world, { clock, tokenLifetime: 'PT1M' });
    clock.advance(60_000);
    expect((await world.hearOut()).at(-1)).toBe('E4 closed FAILED timeout');
    await world.abort(sessionId, { session_token: token });
    await world.echo();
    expect([world.logged(/"audit"/), world.logged(/nothing to stop/).length]).toEqual([[], 1]);
  });

  verifies('V-78', 'an abort without a token is refused where one is required', async () => {
    await using world = await World.create(stack());
    const task = await startTask(world, { abortToken: 'required' });
    await world.abort(task.sessionId);
    await wasRefused(world, task, 'it has no token');
  });

  verifies('V-78', 'an abort with its token is obeyed where one is required', async () => {
    await using world = await World.create(stack());
    const { sessionId, token } = await startTask(world, { abortToken: 'required' });
    await world.abort(sessionId, { session_token: token });
    expect((await world.hearOut()).at(-1)).toBe('E5 closed ABORTED cleanup_complete');
  });

  verifies('V-78', 'an abort without a token is obeyed where none is required', async () => {
    await using world = await World.create(stack());
    const { sessionId } = await startTask(world);
    await world.abort(sessionId);
    expect((await world.hearOut()).at(-1)).toBe('E5 closed ABORTED cleanup_complete');
  });

  verifies('V-79', 'an abort of another caller is refused, even with the token', async () => {
    await using world = await World.create(stack());
    const task = await startTask(world);
    await world.abort(task.sessionId, { session_token: task.token }, 'mallory');
    await wasRefused(world, task, 'another caller sent it');
  });

  verifies('V-79', 'an abort under another login is refused, even with the token and the right name', async () => {
    await using world = await World.create(stack());
    let login = 'alice';
    const transport = under(await world.connect(), () => login);
    const task = await startTask(world, { transport });
    login = 'mallory';
    await world.abort(task.sessionId, { session_token: task.token });
    await wasRefused(world, task, 'another login sent it');
  });

  verifies('V-79', 'a refusal is on record in every state of the session', async () => {
    await using world = await World.create(stack());
    const task = await startTask(world);
    task.finish();
    await world.hearOut();
    await world.abort(task.sessionId, { session_token: 'forged' }, 'mallory');
    await world.echo();
    expect(world.logged(/"audit":"abort_refused".*"state":"COMPLETED"/)).toHaveLength(1);
    expect(tell(await again(world))).toBe('task_accepted');
  });
});

/** The callee still serves. */
async function again(world: World) {
  await world.submit();
  return world.next();
}

/** Shows a later time than its timers know of, as a process that was held up does. */
class LateClock extends ManualClock {
  lateByMs = 0;

  override now(): number {
    return super.now() + this.lateByMs;
  }
}
