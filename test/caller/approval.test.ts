import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Caller, PendingApproval, Session } from '../../caller/index.ts';
import type { TaskSubmit } from '../../schemas/types.ts';
import { CallerRoom, collect, DO_IT, isPending, TIMES } from '../support/caller-room.ts';
import { enter, entries, inOrder } from '../support/ledger.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const TRY_MS = TIMES.submitTimeoutMs;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
const handler = { onEvent: enter };

interface Asked {
  readonly submitted: Promise<Session>;
  readonly submit: TaskSubmit;
  readonly sessionId: string;
}

/** A submit about which a human decides within the hour. */
async function ask(room: CallerRoom, caller: Caller, signal?: AbortSignal): Promise<Asked> {
  const submitted = caller.submit(DO_IT, { calleeId: room.calleeId, ...(signal && { signal }) });
  submitted.catch(() => {});
  const submit = await room.callee.command('task_submit');
  const sessionId = await room.callee.pend(submit, room.clock.now() + HOUR_MS);
  await room.told.until(`pending R4 ${sessionId}`);
  return { submitted, submit, sessionId };
}

/** The rest of a session that was approved. */
async function finish(room: CallerRoom, sessionId: string): Promise<void> {
  const created = { state: 'PENDING', risk_level: 'R4', session_token: `token of ${sessionId}` };
  await room.callee.event(sessionId, 2, 'session_created', created);
  await room.callee.complete(sessionId);
  await room.callee.closed(sessionId, 3, 'COMPLETED');
}

async function statusOf(room: CallerRoom, submit: TaskSubmit): Promise<unknown> {
  return (await room.store.get('submissions', [room.callerId, submit.message_id]))?.status;
}

describeOnStacks('a task about which a human decides', (stack) => {
  verifies(['P3', 'P9'], 'every callee is asked to tell of it, and none has to', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    expect(submit.payload.extensions).toMatchObject({
      'approval/1': { required: false },
      'cure/1': { required: false },
    });
    expect(submit.payload.extensions).not.toHaveProperty('pause/1');
    await room.callee.reject(submit);
    await submitted;
  });

  verifies(
    ['P3', 'V-24'],
    'is told once, not sent again, and followed from its first event when approved',
    async () => {
      await using room = await CallerRoom.create(stack());
      const told: PendingApproval[] = [];
      const caller = await room.caller({
        ...handler,
        onApprovalPending: (pending) => {
          told.push(pending);
          room.told.add(`pending R4 ${pending.sessionId}`);
        },
      });
      const { submitted, submit, sessionId } = await ask(room, caller);
      const { calleeId } = room;
      const expiresAt = room.clock.now() + HOUR_MS;
      await room.clock.armed(HOUR_MS + TIMES.graceMs);
      expect(room.clock.has(TRY_MS)).toBe(false);
      room.clock.advance(HOUR_MS / 2);
      await room.callee.pend(submit, expiresAt, { sessionId });
      await room.callee.accept(submit, { sessionId });
      const session = await submitted;
      await room.callee.pend(submit, expiresAt, { sessionId });
      await finish(room, sessionId);
      expect(await session.result()).toMatchObject({ status: 'completed' });
      await room.ended(sessionId);
      expect(await entries(room.store, sessionId)).toEqual(inOrder([1, 2, 3]));
      expect(told).toEqual([{ messageId: submit.message_id, sessionId, calleeId, expiresAt, riskLevel: 'R4' }]);
      expect([await room.waiting(sessionId), room.callee.unheard, room.told.all.length]).toEqual([[], 0, 1]);
      expect(room.clock.has(HOUR_MS + TIMES.graceMs)).toBe(false);
    },
  );

  verifies(['P3', 'V-24'], 'a reader gets the waiting for the human first', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { submitted, submit, sessionId } = await ask(room, caller);
    await room.callee.accept(submit, { sessionId });
    await finish(room, sessionId);
    const events = await collect((await submitted).events());
    expect(events.map(({ payload }) => `${payload.sequence} ${payload.event_type}`)).toEqual([
      '1 x-approval-pending',
      '2 session_created',
      '3 session_closed',
    ]);
    expect(await room.waiting(sessionId)).toEqual([]);
  });

  verifies(['P3', 'HCP-209'], 'however close the acceptance is, before or behind: each event counts once', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    for (let round = 0; round < 10; round++) {
      const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
      const submit = await room.callee.command('task_submit');
      const sessionId = randomUUID();
      const pend = () => room.callee.pend(submit, room.clock.now() + HOUR_MS, { sessionId });
      const accept = () => room.callee.accept(submit, { sessionId });
      await Promise.all((round % 2 === 0 ? [pend, accept] : [accept, pend]).map((say) => say()));
      await finish(room, sessionId);
      expect(await (await submitted).result()).toMatchObject({ status: 'completed' });
      await room.ended(sessionId);
      expect(await entries(room.store, sessionId)).toEqual(inOrder([1, 2, 3]));
    }
    expect(room.told.all.filter((what) => !what.startsWith('pending'))).toEqual([]);
  });

  verifies(['P3', 'V-25'], 'is a rejection when denied, and nothing of it stays', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller({ ...handler, prefetch: 1 });
    for (const reason_code of ['approval_denied', 'approval_timeout']) {
      const { submitted, submit, sessionId } = await ask(room, caller);
      expect(await room.waiting(sessionId)).toHaveLength(1);
      const said = { reason_code, assessed_risk_level: 'R4', suggestion: 'Ask for less' };
      await room.callee.reject(submit, said, { sessionId });
      const session = await submitted;
      expect([session.sessionId, session.state]).toEqual([undefined, 'REJECTED']);
      expect(await session.result()).toMatchObject({
        status: 'rejected',
        reasonCode: reason_code,
        reasonMessage: 'Not you',
        suggestion: 'Ask for less',
        assessedRiskLevel: 'R4',
        message: { session_id: sessionId },
      });
      const told = room.told.all.length;
      await room.callee.pend(submit, room.clock.now() + HOUR_MS, { sessionId });
      await room.callee.reject({ ...submit, message_id: randomUUID() }); // comes behind it
      await room.told.count(told + 1);
      expect(room.told.all.slice(told)).toEqual(['uncorrelated task_rejected']);
      expect(await room.waiting(sessionId)).toEqual([]);
    }
  });

  verifies(['P3', 'HCP-202'], 'is given up and withdrawn when nobody has decided in time', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const { submitted, submit, sessionId } = await ask(room, caller);
    await room.clock.armed(HOUR_MS + TIMES.graceMs);
    room.clock.advance(HOUR_MS + TIMES.graceMs - 1);
    expect(await isPending(submitted)).toBe(true);
    room.clock.advance(1);
    await expect(submitted).rejects.toMatchObject({ code: 'submit_timeout' });
    expect(await room.callee.command('abort')).toMatchObject({ session_id: sessionId });
    expect(room.told.all).toEqual([`pending R4 ${sessionId}`, 'trouble submit_timeout']);
    expect([await statusOf(room, submit), await room.waiting(sessionId)]).toEqual(['abandoned', []]);
  });

  verifies('P3', 'a callee cannot keep a submit open for longer than a week', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    const outcome = submitted.catch((error: unknown) => error);
    const submit = await room.callee.command('task_submit');
    await room.callee.pend(submit, room.clock.now() + 52 * WEEK_MS);
    await room.clock.ring(WEEK_MS + TIMES.graceMs);
    expect(await outcome).toMatchObject({ code: 'submit_timeout' });
  });

  verifies(['P3', 'V-70'], 'is withdrawn by the signal, at once and without a token', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const change = new AbortController();
    const { submitted, submit, sessionId } = await ask(room, caller, change.signal);
    const reason = new Error('Changed my mind');
    change.abort(reason);
    await expect(submitted).rejects.toBe(reason);
    const abort = await room.callee.command('abort');
    expect([abort.session_id, abort.payload]).toEqual([sessionId, { reason: 'Changed my mind' }]);
    await room.callee.reject(submit, { reason_code: 'withdrawn' }, { sessionId });
    await room.callee.event(randomUUID(), 1, 'log', { level: 'info', message: 'behind it' });
    await room.told.until('orphan event');
    expect(room.told.all).toEqual([`pending R4 ${sessionId}`, 'orphan event']);
    expect(room.logged(/rejection/)).toEqual([]);
    expect([await statusOf(room, submit), await room.waiting(sessionId)]).toEqual(['abandoned', []]);
    expect(room.clock.has(HOUR_MS + TIMES.graceMs)).toBe(false);
  });

  verifies(['P3', 'HCP-205'], 'is aborted when it was accepted before the withdrawal came', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const change = new AbortController();
    const { submitted, submit, sessionId } = await ask(room, caller, change.signal);
    change.abort(new Error('Changed my mind'));
    await expect(submitted).rejects.toThrow('Changed my mind');
    await room.callee.command('abort');
    await room.callee.accept(submit, { sessionId });
    const abort = await room.callee.command('abort');
    expect(abort).toMatchObject({ session_id: sessionId, payload: { session_token: `token of ${sessionId}` } });
    await room.told.until('uncorrelated task_accepted');
    expect(await caller.session(sessionId)).toBeUndefined();
  });

  verifies(['P3', 'V-70'], 'is withdrawn when it was given up before anything was heard of the human', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const change = new AbortController();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId, signal: change.signal });
    const submit = await room.callee.command('task_submit');
    change.abort(new Error('Changed my mind'));
    await expect(submitted).rejects.toThrow('Changed my mind');
    const sessionId = await room.callee.pend(submit, room.clock.now() + HOUR_MS);
    expect(await room.callee.command('abort')).toMatchObject({ session_id: sessionId });
    await room.told.until('orphan event');
    expect(await room.waiting(sessionId)).toEqual([]);
  });

  verifies(['P3', 'V-24', 'HCP-203'], 'is waited for across a restart, and told no second time', async () => {
    await using room = await CallerRoom.create(stack());
    const first = await room.caller(handler);
    const { submitted, submit, sessionId } = await ask(room, first);
    await first.close();
    await expect(submitted).rejects.toMatchObject({ code: 'caller_closed' });
    room.clock.advance(HOUR_MS / 4);
    const second = await room.caller(handler);
    await room.clock.armed((3 * HOUR_MS) / 4 + TIMES.graceMs);
    expect(room.clock.has(TRY_MS)).toBe(false);
    await room.callee.pend(submit, room.clock.now() + HOUR_MS, { sessionId });
    await room.callee.accept(submit, { sessionId });
    await finish(room, sessionId);
    await room.ended(sessionId);
    expect(await entries(room.store, sessionId)).toEqual(inOrder([1, 2, 3]));
    expect(await (await second.session(sessionId))?.result()).toMatchObject({ status: 'completed' });
    expect([room.told.all, room.callee.unheard]).toEqual([[`pending R4 ${sessionId}`], 0]);
  });

  verifies(['P3', 'V-25', 'HCP-203'], 'a denial, or none in time, ends it after a restart too', async () => {
    await using room = await CallerRoom.create(stack());
    const first = await room.caller();
    const denied = await ask(room, first);
    const forgotten = await ask(room, first);
    await first.close();
    room.clock.advance(2 * HOUR_MS);
    const second = await room.caller();
    await room.clock.armed(TIMES.graceMs); // what was said meanwhile may still come
    await room.callee.reject(denied.submit, { reason_code: 'approval_denied' }, denied);
    await expect.poll(() => second.storage()).toMatchObject({ submissions: { rejected: 1 }, parked: { waiting: 1 } });
    await room.clock.ring(TIMES.graceMs);
    expect(await room.callee.command('abort')).toMatchObject({ session_id: forgotten.sessionId });
    await expect.poll(() => second.storage()).toMatchObject({ submissions: { abandoned: 1 }, parked: { waiting: 0 } });
  });

  verifies(
    ['P3', 'HCP-205'],
    'a process that asked is not impatient while another one heard of the human',
    async () => {
      await using room = await CallerRoom.create(stack());
      await room.caller(); // the active consumer
      const standby = await room.caller({ submitTries: 1 });
      const change = new AbortController();
      const { submitted, sessionId } = await ask(room, standby, change.signal);
      await room.clock.ring(1000); // it looks what the other one stored
      await room.clock.armed(HOUR_MS - 1000 + TIMES.graceMs);
      expect(room.clock.has(TRY_MS)).toBe(false);
      change.abort(new Error('Changed my mind'));
      await expect(submitted).rejects.toThrow('Changed my mind');
      expect(await room.callee.command('abort')).toMatchObject({ session_id: sessionId });
    },
  );

  verifies('P3', 'only the callee that was asked can say so', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    const stranger = await room.scripted(`stranger-${randomUUID()}`);
    await stranger.pend(submit, room.clock.now() + HOUR_MS);
    await expect.poll(() => room.logged(/Event of another callee: refused/)).toHaveLength(1);
    await room.clock.ring(TRY_MS);
    expect((await room.callee.command('task_submit')).message_id).toBe(submit.message_id);
    await room.callee.accept(submit);
    await submitted;
    expect(room.told.all).toEqual([]);
  });

  verifies(['P3', 'HCP-223'], 'what fits no open submit is an orphan, and touches no other session', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller(handler);
    const followed = await room.begin(caller);
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    const expiresAt = room.clock.now() + HOUR_MS;
    await room.callee.pend({ ...submit, message_id: randomUUID() }, expiresAt);
    await room.callee.pend(submit, expiresAt, { sequence: 7 });
    await room.callee.event(randomUUID(), 1, 'x-approval-pending', { in_reply_to: submit.message_id });
    await room.told.count(3);
    // The session of another submit: no more than an event of that session.
    await room.callee.pend(submit, expiresAt, followed);
    await room.followed(followed.sessionId, (row) => row.last_processed_sequence === 1);
    expect(room.told.all).toEqual(['orphan event', 'orphan event', 'orphan event']);
    await room.clock.armed(TRY_MS);
    await room.callee.accept(submit);
    await submitted;
  });

  verifies(
    ['P3', 'HCP-220'],
    'an acceptance with another session than was told of is followed all the same',
    async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller(handler);
      const { submitted, submit, sessionId } = await ask(room, caller);
      const other = await room.callee.accept(submit);
      expect((await submitted).sessionId).toBe(other);
      expect(await room.waiting(sessionId)).toEqual([]);
    },
  );
});
