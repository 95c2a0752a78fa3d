import { expect } from 'vitest';
import { CallerRoom, DO_IT, isPending, TIMES } from '../support/caller-room.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const handler = { onEvent: () => {} };

/** With a handler, and with nobody reading: a result is had either way. */
const MANNERS = [
  ['with a handler', handler],
  ['with nobody reading', {}],
] as const;

describeOnStacks('results', (stack) => {
  for (const [manner, options] of MANNERS) {
    verifies(['HCP-228'], `a result counts before, between and behind the closing events, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(options);
      for (const place of [0, 1, 2, 3]) {
        const { session, sessionId } = await room.begin(caller);
        const sayings = [
          () => room.callee.move(sessionId, 1, 'PENDING', 'RUNNING'),
          () => room.callee.move(sessionId, 2, 'RUNNING', 'COMPLETED'),
          () => room.callee.closed(sessionId, 3, 'COMPLETED'),
        ];
        sayings.splice(place, 0, () => room.callee.complete(sessionId, { place }));
        for (const say of sayings) await say();
        expect(await session.result()).toMatchObject({ status: 'completed', outputs: { place } });
      }
      expect(room.told.all).toEqual([]);
    });

    verifies(['HCP-228'], `a failure and an abort are outcomes, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(options);
      const failing = await room.begin(caller);
      await room.callee.fail(failing.sessionId, 'melted', 'The furnace is gone');
      expect(await failing.session.result()).toMatchObject({
        status: 'failed',
        errorCode: 'melted',
        errorMessage: 'The furnace is gone',
      });
      const aborted = await room.begin(caller);
      await room.callee.move(aborted.sessionId, 1, 'RUNNING', 'ABORTING');
      await room.callee.closed(aborted.sessionId, 2, 'ABORTED');
      expect(await aborted.session.result()).toEqual({ status: 'aborted' });
      expect(aborted.session.state).toBe('ABORTED');
    });

    verifies(['V-126', 'HCP-221'], `a result waits for the events held back before it, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(options);
      const { session, sessionId } = await room.begin(caller);
      await room.callee.report(sessionId, 1, 2, 3, 4, 5, 7);
      await room.clock.armed(TIMES.gapHoldMs); // E7 waits for E6
      await room.callee.complete(sessionId, { done: true });
      await room.followed(sessionId, ({ result }) => result !== null);
      expect(await isPending(session.result())).toBe(true);
      await room.callee.report(sessionId, 6);
      expect(await session.result()).toMatchObject({ status: 'completed' });
      expect(room.told.all).toEqual([]);
    });

    verifies(['V-126', 'HCP-221'], `a result does not wait longer than the gap time, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(options);
      const { session, sessionId } = await room.begin(caller);
      await room.callee.report(sessionId, 1, 3);
      await room.callee.complete(sessionId, { done: true });
      await room.clock.ring(TIMES.gapHoldMs);
      expect(await session.result()).toMatchObject({ status: 'completed' });
      expect(room.told.all).toEqual(['gap 2..2']);
    });

    verifies(['HCP-221'], `a result that tells how many events came before it waits for them, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(options);
      const { session, sessionId } = await room.begin(caller, { extensions: { 'stream/1': {} } });
      await room.callee.report(sessionId, 1);
      await room.callee.complete(sessionId, {}, { extensions: { 'stream/1': { last_sequence: 3 } } });
      await room.clock.armed(TIMES.graceMs);
      expect(await isPending(session.result())).toBe(true);
      await room.callee.report(sessionId, 2, 3);
      expect(await session.result()).toMatchObject({ status: 'completed' });
      expect(room.told.all).toEqual([]);
    });

    verifies(['HCP-221'], `events that never come do not keep a result for ever, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(options);
      const { session, sessionId } = await room.begin(caller);
      await room.callee.report(sessionId, 1);
      await room.callee.complete(sessionId, {}, { extensions: { 'stream/1': { last_sequence: 3 } } });
      await room.clock.ring(TIMES.graceMs);
      expect(await session.result()).toMatchObject({ status: 'completed' });
      expect(room.told.all).toEqual(['gap 2..3']);
    });

    verifies(
      ['V-127', 'HCP-228'],
      `a session closed without a result lacks one after the grace time, ${manner}`,
      async () => {
        await using room = await CallerRoom.create(stack());
        const caller = await room.caller(options);
        const { session, sessionId } = await room.begin(caller);
        await room.callee.closed(sessionId, 1, 'COMPLETED');
        await room.clock.armed(TIMES.graceMs);
        const result = session.result().catch((error: unknown) => error);
        expect(await isPending(result)).toBe(true);
        room.clock.advance(TIMES.graceMs);
        expect(await result).toMatchObject({ code: 'result_missing' });
        expect(room.told.all).toEqual(['trouble result_missing']);
        await caller.close();
        const again = await (await room.caller(options)).session(sessionId);
        await expect(again?.result()).rejects.toMatchObject({ code: 'result_missing' });
        expect(room.told.all).toEqual(['trouble result_missing']);
      },
    );

    verifies('V-127', `a result within the grace time is in time, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(options);
      const { session, sessionId } = await room.begin(caller);
      await room.callee.closed(sessionId, 1, 'COMPLETED');
      await room.clock.armed(TIMES.graceMs);
      await room.callee.complete(sessionId);
      expect(await session.result()).toMatchObject({ status: 'completed' });
      expect(room.clock.has(TIMES.graceMs)).toBe(false);
    });

    verifies(['V-128', 'HCP-228'], `a session that is never closed is closed locally, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(options);
      const { session, sessionId } = await room.begin(caller);
      await room.callee.report(sessionId, 1);
      await room.callee.complete(sessionId, { all: 'there' });
      expect(await session.result()).toMatchObject({ status: 'completed' });
      await room.clock.ring(TIMES.graceMs);
      const row = await room.ended(sessionId);
      expect(row).toMatchObject({ open: null, ended_at: room.clock.now() });
      expect(room.told.all).toEqual([]);
      await caller.close();
      const again = await (await room.caller(options)).session(sessionId);
      expect(await again?.result()).toMatchObject({ outputs: { all: 'there' } });
    });
  }

  verifies(['P8', 'V-05'], 'a failure tells its last checkpoint, and a new task can name it', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const { session, sessionId } = await room.begin(caller);
    await room.callee.fail(sessionId, 'timeout', 'Too slow', { error_details: { last_checkpoint: 'ckpt-7' } });
    const outcome = await session.result();
    expect(outcome).toMatchObject({ status: 'failed', errorCode: 'timeout', lastCheckpoint: 'ckpt-7' });
    const extensions = { 'resume/1': { session_id: sessionId, checkpoint_id: 'ckpt-7', required: true } };
    const submitted = caller.submit({ ...DO_IT, extensions }, { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    expect(submit.payload.extensions).toMatchObject({ ...extensions, 'replay/1': { required: false } });
    await room.callee.accept(submit);
    await submitted;
  });

  verifies(['HCP-221'], 'the events a result tells of are asked for again where that was agreed', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const { session, sessionId } = await room.begin(caller, { extensions: { 'replay/1': {}, 'stream/1': {} } });
    await room.callee.report(sessionId, 1);
    await room.callee.complete(sessionId, {}, { extensions: { 'stream/1': { last_sequence: 3 } } });
    const { body } = await room.callee.next();
    expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({
      type: 'x-replay',
      session_id: sessionId,
      payload: { from_sequence: 2, to_sequence: 3 },
    });
    await room.callee.report(sessionId, 2, 3);
    expect(await session.result()).toMatchObject({ status: 'completed' });
  });

  verifies('HCP-220', 'the first result counts; the same again and a different one change nothing', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const { session, sessionId } = await room.begin(caller);
    await room.callee.complete(sessionId, { first: true }, {}, { messageId: '7c9e6679-7425-4de4-944b-e07fc1f90ae7' });
    expect(await session.result()).toMatchObject({ outputs: { first: true } });
    await room.callee.complete(sessionId, { first: true }, {}, { messageId: '7c9e6679-7425-4de4-944b-e07fc1f90ae7' });
    await room.callee.fail(sessionId, 'execution_error', 'On second thoughts');
    await room.callee.closed(sessionId, 1, 'COMPLETED');
    const row = await room.ended(sessionId);
    expect(await session.result()).toMatchObject({ status: 'completed', outputs: { first: true } });
    expect(JSON.parse(String(row.result))).toMatchObject({ payload: { outputs: { first: true } } });
    expect(room.logged(/A second result: ignored/)).toHaveLength(1);
  });

  verifies('HCP-220', 'of two different results at once, what is stored is what is told', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const { session, sessionId } = await room.begin(caller);
    await Promise.all([room.callee.complete(sessionId, { n: 1 }), room.callee.complete(sessionId, { n: 2 })]);
    const outcome = await session.result();
    await caller.close();
    const row = await room.store.get('follows', [room.callerId, sessionId]);
    expect(outcome).toMatchObject({ message: JSON.parse(String(row?.result)) });
    expect(room.logged(/A second result: ignored/)).toHaveLength(1);
  });

  verifies('HCP-221', 'a result comes after the handler is done with what came before it', async () => {
    await using room = await CallerRoom.create(stack());
    const { promise: proceed, resolve: tellProceed } = Promise.withResolvers<void>();
    const { promise: entered, resolve: tellEntered } = Promise.withResolvers<void>();
    const order: string[] = [];
    const caller = await room.caller({
      onEvent: async () => {
        tellEntered();
        await proceed;
        order.push('event');
      },
    });
    const { session, sessionId } = await room.begin(caller);
    await room.callee.report(sessionId, 1);
    await entered;
    await room.callee.complete(sessionId);
    const result = session.result().then(() => order.push('result'));
    expect(await isPending(result)).toBe(true);
    tellProceed();
    await result;
    // A handler may run more than once before its commit: the result is stored in the row its cursor moves.
    expect([order[0], order.indexOf('result')]).toEqual(['event', order.length - 1]);
  });

  verifies('HCP-229', 'a session that should have ended is reported, and followed on', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const { session, sessionId } = await room.begin(caller, { constraints: { max_duration: 'PT1M' } });
    const result = session.result().catch((error: unknown) => error);
    await room.clock.ring(60_000 + TIMES.graceMs);
    expect(await result).toMatchObject({ code: 'session_stalled' });
    expect(room.told.all).toEqual(['trouble session_stalled']);
    await expect(session.result()).rejects.toMatchObject({ code: 'session_stalled' });
    await room.callee.complete(sessionId, { late: true });
    await room.callee.closed(sessionId, 1, 'COMPLETED');
    await room.ended(sessionId);
    expect(await session.result()).toMatchObject({ status: 'completed', outputs: { late: true } });
  });

  verifies('HCP-231', 'a transition that is none is logged and followed', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const { session, sessionId } = await room.begin(caller);
    await room.callee.move(sessionId, 1, 'PENDING', 'RUNNING');
    await room.callee.move(sessionId, 2, 'RUNNING', 'RUNNING');
    await room.callee.move(sessionId, 3, 'COMPLETED', 'PAUSED');
    await room.callee.complete(sessionId);
    await session.result();
    expect(session.state).toBe('PAUSED');
    expect(room.logged(/No transition of HCP/)).toHaveLength(2);
  });

  verifies('HCP-227', 'outputs that are not what was asked for are reported with the result', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const task = { capability: 'test.task', intent: 'Measure', inputs: {} };
    const expected_output = { required_fields: ['mass'], schema: { properties: { mass: { type: 'number' } } } };
    for (const [outputs, trouble] of [
      [{ mass: 3 }, []],
      [{ mass: 'heavy' }, ['trouble outputs_unexpected']],
      [{}, ['trouble outputs_unexpected', 'trouble outputs_unexpected']],
    ] as const) {
      const submitted = caller.submit({ ...task, expected_output }, { calleeId: room.calleeId });
      const sessionId = await room.callee.accept();
      await room.callee.complete(sessionId, outputs);
      expect(await (await submitted).result()).toMatchObject({ status: 'completed', outputs });
      await room.told.count(trouble.length);
      expect(room.told.all).toEqual(trouble);
    }
  });
});
