import { expect } from 'vitest';
import { CallerRoom, DO_IT, isPending, TIMES } from '../support/caller-room.ts';
import { enter, entries, inOrder } from '../support/ledger.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const TRY_MS = TIMES.submitTimeoutMs;

describeOnStacks('a submit that outlives its program, or is given up by it', (stack) => {
  verifies(['V-138', 'HCP-203'], 'an answer is still matched after a restart', async () => {
    await using room = await CallerRoom.create(stack());
    const first = await room.caller();
    const cut = first.submit(DO_IT, { calleeId: room.calleeId }).catch((error: unknown) => error);
    const submit = await room.callee.command('task_submit');
    await first.close();
    expect(await cut).toMatchObject({ code: 'caller_closed' });

    const sessionId = await room.callee.accept(submit);
    const { promise: closed, resolve: tellClosed } = Promise.withResolvers<void>();
    const second = await room.caller({
      onEvent: async (event, tx) => {
        await enter(event, tx);
        if (event.payload.event_type === 'session_closed') tellClosed();
      },
    });
    await room.callee.report(sessionId, 1);
    await room.callee.complete(sessionId, { late: true });
    await room.callee.closed(sessionId, 2, 'COMPLETED');
    await room.within('the session to be closed', closed);
    const session = await second.session(sessionId);
    expect(await session?.result()).toMatchObject({ status: 'completed', outputs: { late: true } });
    await room.ended(sessionId);
    expect([await entries(room.store, sessionId), room.told.all]).toEqual([inOrder([1, 2]), []]);
  });

  verifies(
    ['V-138', 'HCP-202', 'HCP-203'],
    'an open submit is sent again after a restart, the same bytes',
    async () => {
      await using room = await CallerRoom.create(stack());
      const first = await room.caller();
      first.submit(DO_IT, { calleeId: room.calleeId }).catch(() => {});
      const before = await room.callee.next();
      await first.close();
      const second = await room.caller();
      await room.clock.ring(TRY_MS);
      const again = await room.callee.next();
      expect(again.body).toEqual(before.body);
      const message = JSON.parse(Buffer.from(again.body).toString());
      const sessionId = await room.callee.accept(message);
      await room.callee.complete(sessionId);
      await room.callee.closed(sessionId, 1, 'COMPLETED');
      await room.ended(sessionId);
      const session = await second.session(sessionId);
      expect(await session?.result()).toMatchObject({ status: 'completed' });
    },
  );

  verifies('HCP-205', 'a signal ends the waiting with its reason; what is accepted then is aborted', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const impatience = new AbortController();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId, signal: impatience.signal });
    const outcome = submitted.catch((error: unknown) => error);
    const submit = await room.callee.command('task_submit');
    expect(await isPending(outcome)).toBe(true);
    const reason = new Error('No time');
    impatience.abort(reason);
    expect(await outcome).toBe(reason);
    const sessionId = await room.callee.accept(submit);
    expect(await room.callee.command('abort')).toMatchObject({ session_id: sessionId });
    await room.told.until('uncorrelated task_accepted');
    expect(room.clock.has(TRY_MS)).toBe(false);
  });

  verifies('HCP-203', 'a signal that is aborted before keeps the submit from being stored or sent', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const signal = AbortSignal.abort(new Error('Never mind'));
    await expect(caller.submit(DO_IT, { calleeId: room.calleeId, signal })).rejects.toThrow('Never mind');
    const open = await room.store.scan('submissions', 'by_status', { where: [room.callerId, 'open'], limit: 10 });
    expect([open, room.callee.unheard]).toEqual([[], 0]);
  });

  verifies('HCP-205', 'a signal after the answer changes nothing', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const impatience = new AbortController();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId, signal: impatience.signal });
    const sessionId = await room.callee.accept();
    const session = await submitted;
    impatience.abort();
    await room.callee.complete(sessionId);
    expect(await session.result()).toMatchObject({ status: 'completed' });
    expect(room.callee.unheard).toBe(0);
  });

  verifies('HCP-203', 'a submit that cannot be built is refused before anything is stored', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const broken = { ...DO_IT, inputs: { at: () => 1 } };
    await expect(caller.submit(broken, { calleeId: room.calleeId })).rejects.toMatchObject({ code: 'message_invalid' });
    await expect(caller.submit(DO_IT, { calleeId: 'a.b' })).rejects.toThrow(TypeError);
    expect(await room.store.scan('submissions', 'by_status', { where: [room.callerId], limit: 10 })).toEqual([]);
    await caller.close();
    await expect(caller.submit(DO_IT, { calleeId: room.calleeId })).rejects.toMatchObject({ code: 'caller_closed' });
  });

  verifies('HCP-205', 'of two processes of one caller, the one that asked gets what the other heard', async () => {
    await using room = await CallerRoom.create(stack());
    await room.caller(); // the active consumer
    const standby = await room.caller({ submitTries: 1 });
    const submitted = standby.submit(DO_IT, { calleeId: room.calleeId });
    const sessionId = await room.callee.accept();
    await room.followed(sessionId, () => true);
    await room.clock.ring(TRY_MS);
    expect((await submitted).sessionId).toBe(sessionId);
    expect(room.told.all).not.toContain('trouble submit_timeout');
  });
});
