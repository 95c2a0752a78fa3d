import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { CallerRights, Run } from '../../callee/index.ts';
import type { Extensions } from '../../schemas/types.ts';
import { untilStopped } from '../support/executors.ts';
import { ALL, askReplay, askStatus, dataOf } from '../support/inquiries.ts';
import { bytes, submitObject, wireProperties } from '../support/messages.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

/** What is in force of what was asked for. */
async function agreed(world: World, extensions?: Extensions): Promise<unknown> {
  await world.submit(extensions ? { extensions } : {});
  const accepted = await world.next();
  if (accepted.type !== 'task_accepted') throw new Error(`Heard ${tell(accepted)}`);
  await world.hearOut();
  return accepted.payload.extensions;
}

async function sessionOf(world: World, messageId: string): Promise<string> {
  const row = await world.store.get('answers', [world.calleeId, world.callerId, messageId]);
  return String(row?.session_id);
}

describeOnStacks('extensions', (stack) => {
  verifies('P9', 'those asked for and offered are in force, and nothing else', async () => {
    await using world = await World.create(stack());
    const declared = { extensions: ['acme.org/colour/1', 'pause/1'] };
    await world.serve(async () => ({ outputs: {} }), {}, declared);
    expect(await agreed(world, ALL)).toEqual({ 'replay/1': {}, 'status/1': {}, 'stream/1': {} });
    expect(await agreed(world, { 'stream/1': { required: true } })).toEqual({ 'stream/1': {} });
    expect(await agreed(world, { 'replay/2': {}, 'resume/1': { required: false }, odd: null })).toBeUndefined();
    expect(await agreed(world, { 'pause/1': {}, 'approval/1': {}, 'cure/1': {} })).toEqual({
      'pause/1': {},
      'approval/1': {},
      'cure/1': {},
    });
    expect(await agreed(world, { 'acme.org/colour/1': { required: true } })).toEqual({ 'acme.org/colour/1': {} });
    expect(await agreed(world)).toBeUndefined();
  });

  verifies('P9', 'a task that requires one we lack is rejected, naming it', async () => {
    await using world = await World.create(stack());
    await world.serve(async () => ({ outputs: {} }), {}, { extensions: ['resume/1', 'artifact/1'] });
    await world.submit({ extensions: { ...ALL, 'pause/1': { required: true } } });
    expect(await world.next()).toMatchObject({
      type: 'task_rejected',
      payload: {
        reason_code: 'invalid_input',
        reason_message: '/payload/extensions requires pause/1',
        suggestion: 'Offered are replay/1, status/1, stream/1, approval/1, cure/1, resume/1',
      },
    });
    await world.echo();
  });

  verifies('P9', 'nothing of an extension is sent to a caller that did not ask for it', async () => {
    await using world = await World.create(stack());
    const { promise: proceed, resolve: finish } = Promise.withResolvers<void>();
    await world.serve(async () => {
      await proceed;
      return { outputs: {} };
    });
    await world.submit();
    const { sessionId } = await world.started();
    await askReplay(world, sessionId, [1, 9]);
    await askStatus(world, sessionId);
    await world.echo();
    expect(world.logged(/"type":"x-(replay|status)".*not in force/)).toHaveLength(2);
    finish();
    const completed = await world.next();
    expect(completed).toMatchObject({ type: 'task_completed' });
    expect(completed.payload).not.toHaveProperty('extensions');
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies('HCP-130', 'commands that are malformed or of an unknown extension are dead-lettered', async () => {
    await using world = await World.create(stack());
    await world.serve(async () => ({ outputs: {} }));
    const session_id = randomUUID();
    const bad = [
      { type: 'x-replay', session_id, payload: { from_sequence: 1 } },
      { type: 'x-replay', session_id, payload: { from_sequence: 2, to_sequence: 1 } },
      { type: 'x-replay', session_id, payload: { from_sequence: -1, to_sequence: 1 } },
      { type: 'x-status', session_id: null, payload: {} },
      { type: 'x-status', session_id, payload: { session_token: 7 } },
      { type: 'x-pause', session_id: null, payload: {} },
      { type: 'x-resume', session_id, payload: { session_token: 7 } },
      { type: 'x-rewind', session_id, payload: {} },
    ].map((command) => submitObject({}, { message_id: randomUUID(), ...command }));
    for (const command of bad) {
      await world.send(bytes(command), wireProperties({ appId: world.callerId }));
      expect(JSON.parse(Buffer.from((await world.buried()).body).toString())).toEqual(command);
    }
    await world.echo();
  });
});

describeOnStacks('stream/1', (stack) => {
  const asked = { extensions: { 'stream/1': { required: false } } };

  verifies('stream/1', 'a result tells the sequence of the last event before it', async () => {
    await using world = await World.create(stack());
    await world.serve(async ({ inputs }, run) => {
      await run.progress({ stage: 'half', message: 'Half' });
      if (inputs.pause) await run.pause();
      if (inputs.fail) throw new Error('Too hot');
      return { outputs: {} };
    });
    for (const [inputs, result, last_sequence] of [
      [{}, 'task_completed', 3],
      [{ fail: true }, 'task_failed', 3],
      [{ pause: true }, 'task_completed', 5], // by way of RUNNING, which is told before
    ] as const) {
      await world.submit({ ...asked, inputs });
      const heard = await world.hear(7 + last_sequence - 3);
      const place = heard.findIndex(({ type }) => type === result);
      expect(heard[place]?.payload).toMatchObject({ extensions: { 'stream/1': { last_sequence } } });
      expect(heard[place - 1]).toMatchObject({ type: 'event', payload: { sequence: last_sequence } });
    }
  });

  verifies('stream/1', 'it stays in force after a restart', async () => {
    await using world = await World.create(stack());
    const first = await world.serve(async (task, run) => {
      await run.checkpoint({ done: 1 }, { description: 'half' });
      return untilStopped(task, run);
    });
    await world.submit(asked);
    expect((await world.hear(4)).map(tell).at(-1)).toBe('E3 checkpoint_created');
    await first.close();
    await world.serve(async () => ({ outputs: {} }));
    const heard = await world.hearFresh(3);
    expect(heard.map(tell).at(-1)).toBe('task_completed');
    expect(heard.at(-1)).toMatchObject({ payload: { extensions: { 'stream/1': { last_sequence: 5 } } } });
  });
});

describeOnStacks('status/1', (stack) => {
  const asked = { extensions: { 'status/1': {} } };

  verifies(
    ['status/1', 'HCP-110', 'HCP-115'],
    'a session tells its state, in its stream while there is one and outside after it',
    async () => {
      await using world = await World.create(stack());
      const { promise: cleaned, resolve: tellCleaned } = Promise.withResolvers<void>();
      const { promise: started, resolve: tellStarted } = Promise.withResolvers<Run>();
      await world.serve((task, run) => {
        run.onCleanup(() => cleaned);
        tellStarted(run);
        return untilStopped(task, run);
      });
      await world.submit(asked);
      const { sessionId, token } = await world.started();
      const status = async () => {
        await askStatus(world, sessionId, { token });
        return dataOf(await world.next());
      };
      const told = { event: 'x-status', result_sent: false };
      expect(await status()).toEqual({ ...told, sequence: 3, state: 'RUNNING', last_sequence: 2 });
      await (await started).pause();
      expect(tell(await world.next())).toBe('E4 RUNNING→PAUSED paused_by_callee');
      expect(await status()).toEqual({ ...told, sequence: 5, state: 'PAUSED', last_sequence: 4 });
      await world.abort(sessionId);
      expect(tell(await world.next())).toBe('E6 PAUSED→ABORTING abort_requested');
      expect(await status()).toEqual({ ...told, sequence: 7, state: 'ABORTING', last_sequence: 6 });
      tellCleaned();
      expect((await world.hearOut()).at(-1)).toBe('E9 closed ABORTED cleanup_complete');
      const over = { ...told, sequence: 0, state: 'ABORTED', last_sequence: 9 };
      expect([await status(), await status()]).toEqual([over, over]);
    },
  );

  verifies(
    ['status/1', 'HCP-115'],
    'a session that is over tells whether there is a result, also after a restart',
    async () => {
      await using world = await World.create(stack());
      const first = await world.serve(async ({ inputs }) => {
        if (inputs.fail) throw new Error('Too hot');
        return { outputs: {} };
      });
      const sessions: string[] = [];
      for (const inputs of [{}, { fail: true }]) {
        await world.submit({ ...asked, inputs });
        sessions.push((await world.started()).sessionId);
        await world.hearOut();
      }
      const told = { event: 'x-status', sequence: 0, last_sequence: 4, result_sent: true };
      const both = async () => {
        const states: object[] = [];
        for (const sessionId of sessions) {
          await askStatus(world, sessionId);
          states.push(dataOf(await world.next()));
        }
        return states;
      };
      const expected = [
        { ...told, state: 'COMPLETED' },
        { ...told, state: 'FAILED' },
      ];
      expect(await both()).toEqual(expected);
      await first.close();
      await world.serve(async () => ({ outputs: {} }));
      expect(await both()).toEqual(expected);
      // Asking has changed nothing.
      const [sessionId = ''] = sessions;
      const log = await world.store.scan('log', 'key', { where: [sessionId], order: 'descending', limit: 1 });
      expect(log[0]).toMatchObject({ kind: 'session_closed', sequence: 4 });
    },
  );

  verifies(
    'status/1',
    'a question that waits for the owner of a session is answered also when that has ended',
    async () => {
      await using world = await World.create(stack());
      const first = await world.serve(async () => ({ outputs: {} }));
      await world.submit(asked);
      const { sessionId } = await world.started();
      await world.hearOut();
      await first.close();
      const row = { session_id: sessionId, message_id: randomUUID(), callee_id: world.calleeId, received_at: 0 };
      const body = JSON.stringify({ type: 'x-status' });
      await world.store.commit([{ put: 'commands', row: { ...row, body, user_id: null, app_id: null } }]);
      await world.serve(async () => ({ outputs: {} }));
      expect(dataOf(await world.next())).toMatchObject({ event: 'x-status', sequence: 0, state: 'COMPLETED' });
      expect(await world.store.scan('commands', 'by_callee', { where: [world.calleeId] })).toEqual([]);
    },
  );

  verifies('status/1', 'a session that was not, or not yet, accepted tells nothing', async () => {
    await using world = await World.create(stack());
    const { promise: asking, resolve: tellAsking } = Promise.withResolvers<void>();
    const { promise: decision, resolve: decide } = Promise.withResolvers<CallerRights | undefined>();
    const callers = ({ task }: { task: { capability: string } }) => {
      if (task.capability === 'test.echo') return {};
      tellAsking();
      return decision;
    };
    await world.serve(async () => ({ outputs: {} }), { policy: { callers } });
    const messageId = await world.submit(asked);
    await asking;
    const sessionId = await sessionOf(world, messageId);
    await askStatus(world, sessionId);
    await world.echo();
    decide(undefined);
    expect(tell(await world.next())).toBe('task_rejected unauthorized');
    await askStatus(world, sessionId);
    await world.echo();
    expect(world.logged(/"type":"x-status","state":"(PENDING|REJECTED)".*not in force/)).toHaveLength(2);
  });
});
