import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { CallerRights, Policy } from '../../callee/index.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import {
  approvalRow,
  counting,
  recorded,
  serveRisky,
  storeDesk,
  until,
  waitingAt,
  waitingOne,
} from '../support/approval-room.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { type Heard, tell, World } from '../support/world.ts';

const APPROVAL = { extensions: { 'approval/1': {} } };
const STARTED_SECOND = ['task_accepted', 'E2 session_created', 'E3 PENDING→RUNNING safety_check_passed'];
const DONE = ['task_completed', 'E4 RUNNING→COMPLETED task_completed', 'E5 closed COMPLETED task_completed'];

/** Submits a task and hears that a human decides; answers the session it would be. */
async function pending(world: World): Promise<string> {
  const messageId = await world.submit(APPROVAL);
  const [message] = await world.hearFresh(1);
  expect(message && tell(message)).toBe('E1 x-approval-pending');
  expect(message?.payload).toMatchObject({ data: { in_reply_to: messageId } });
  return String(message?.session_id);
}

/** Resolves when the callee has logged it. */
async function logs(world: World, pattern: RegExp): Promise<void> {
  await until(
    `a line like ${pattern}`,
    async () => world.logged(pattern),
    (lines) => lines.length > 0,
  );
}

describeOnStacks('a caller that wants to know of approvals', (stack) => {
  verifies('V-24', 'is told first of all, and its session begins behind that', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { executor, runs } = counting();
    const callee = await serveRisky(world, { clock, approvalTimeout: 'PT1H' }, { executor });
    const messageId = await world.submit({ ...APPROVAL, inputs: { level: 'R4' } });
    const told = await world.next();
    const { sessionId } = await waitingOne(callee.approvals);
    expect(told).toMatchObject({
      type: 'event',
      session_id: sessionId,
      payload: {
        event_type: 'x-approval-pending',
        sequence: 1,
        data: {
          in_reply_to: messageId,
          expires_at: new Date(clock.now() + 3_600_000).toISOString(),
          assessed_risk_level: 'R4',
        },
      },
    });
    await callee.approvals.approve(sessionId, { approver: 'ada' });
    expect(await world.hearOut()).toEqual([...STARTED_SECOND, ...DONE]);
    expect(runs).toEqual([sessionId]);
    const heard = world.received.map(({ body }) => JSON.parse(Buffer.from(body).toString()).session_id);
    expect(new Set(heard)).toEqual(new Set([sessionId]));
  });

  verifies('V-55', 'hears nothing more when it submits again meanwhile', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    const messageId = await world.submit(APPROVAL);
    expect(tell(await world.next())).toBe('E1 x-approval-pending');
    for (let i = 0; i < 3; i++) await world.submit(APPROVAL, messageId);
    await world.echo();
    const { sessionId } = await waitingOne(callee.approvals);
    await callee.approvals.approve(sessionId, { approver: 'ada' });
    expect(await world.hearOut()).toEqual([...STARTED_SECOND, ...DONE]);
  });

  verifies('V-25', 'is told of a denial under the session it knows', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    const sessionId = await pending(world);
    await callee.approvals.deny(sessionId, { approver: 'ada', comment: 'not today' });
    expect(await world.next()).toMatchObject({
      type: 'task_rejected',
      session_id: sessionId,
      payload: { reason_code: 'approval_denied', reason_message: 'The task was denied: not today' },
    });
  });

  verifies('V-25', 'is told once, also when it is asked anew after a restart', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    const sessionId = await pending(world);
    const { subject } = await waitingOne(first.approvals);
    await first.close();
    const second = await serveRisky(world, {}, { declaration: { version: '2.0.0' } });
    await approvalRow(world, sessionId, (row) => row.subject !== subject);
    await world.echo();
    await second.approvals.approve(sessionId, { approver: 'ada' });
    expect(await world.hearOut()).toEqual([...STARTED_SECOND, ...DONE]);
  });

  verifies('V-70', 'withdraws the task by an abort', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counting();
    const callee = await serveRisky(world, {}, { executor });
    const sessionId = await pending(world);
    await world.abort(sessionId, { reason: 'changed our mind' });
    expect(await world.next()).toMatchObject({
      type: 'task_rejected',
      session_id: sessionId,
      payload: { reason_code: 'withdrawn' },
    });
    expect(await callee.approvals.list()).toEqual([]);
    await expect(callee.approvals.approve(sessionId, { approver: 'ada' })).rejects.toMatchObject({ reason: 'decided' });
    await world.abort(sessionId);
    await world.echo();
    expect(runs).toEqual([]);
    expect(await approvalRow(world, sessionId)).toMatchObject({ status: 'withdrawn' });
    expect(await recorded(world, sessionId, 'decision')).toMatchObject([{ result: 'withdrawn' }]);
  });

  verifies('V-70', 'withdraws the task also after a restart', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    const sessionId = await pending(world);
    await first.close();
    await world.abort(sessionId);
    await serveRisky(world);
    expect(tell(await world.next())).toBe('task_rejected withdrawn');
  });

  verifies('V-70', 'withdraws the task at whichever instance the abort arrives', async () => {
    await using world = await World.create(stack());
    const rights = { riskLimit: 'R5' } as const;
    const { promise: busy, resolve: tellBusy } = Promise.withResolvers<void>();
    const { promise: decision, resolve: decide } = Promise.withResolvers<CallerRights>();
    const callers: Policy['callers'] = ({ task }) => {
      if (task.capability === 'test.task') return rights;
      tellBusy();
      return decision;
    };
    const owner = await serveRisky(world, { prefetch: 1, policy: { callers } });
    const sessionId = await pending(world);
    // With this in hand the owner takes no other command.
    await world.submit({ capability: 'test.busy' });
    await busy;
    const other = await serveRisky(world);
    await world.abort(sessionId);
    expect(tell(await world.next())).toBe('task_rejected withdrawn');
    expect(await owner.approvals.list()).toEqual([]);
    expect(await other.approvals.list()).toEqual([]);
    decide(rights);
    expect(tell(await world.next())).toBe('task_rejected capability_not_found');
    expect(await world.store.scan('commands', 'by_callee', { where: [world.calleeId] })).toEqual([]);
  });

  verifies('V-70', 'cannot withdraw what it may not: others and wrong tokens meet silence, on record', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    const sessionId = await pending(world);
    await world.abort(sessionId, {}, 'mallory');
    await world.abort(sessionId, { session_token: 'forged' });
    const refused = await until(
      'both refusals',
      () => recorded(world, sessionId, 'command_refused'),
      (found) => found.length === 2,
    );
    expect(refused.map(({ why }) => why).toSorted()).toEqual(['another caller sent it', 'its token is wrong']);
    await world.echo();
    expect(await callee.approvals.list()).toMatchObject([{ sessionId, status: 'pending' }]);
    await callee.approvals.approve(sessionId, { approver: 'ada' });
    expect(await world.hearOut()).toEqual([...STARTED_SECOND, ...DONE]);
  });

  verifies('V-70', 'is wanted: without the extension an abort changes nothing while a human decides', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    await world.abort(sessionId);
    await logs(world, /Abort has nothing to stop/);
    await world.echo();
    await callee.approvals.approve(sessionId, { approver: 'ada' });
    expect((await world.hearOut()).slice(0, 2)).toEqual(['task_accepted', 'E1 session_created']);
  });

  verifies('V-70', 'and a human at the same time: the task either runs and is stopped, or never runs', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counting();
    const callee = await serveRisky(world, { leaseMs: 300 }, { executor });
    for (let round = 0; round < 5; round++) {
      const sessionId = await pending(world);
      const [, voted] = await Promise.allSettled([
        world.abort(sessionId),
        callee.approvals.approve(sessionId, { approver: 'ada' }),
      ]);
      // Where both were under way the session is taken up again, and what it said is said again.
      const [first] = (await world.hearFresh(1)) as [Heard]; // one was asked for
      if (first.type === 'task_rejected') {
        expect(tell(first)).toBe('task_rejected withdrawn');
        expect(runs).not.toContain(sessionId);
      } else {
        expect([tell(first), voted.status]).toEqual(['task_accepted', 'fulfilled']);
        await world.hearOut();
      }
      const status = first.type === 'task_rejected' ? 'withdrawn' : 'used';
      expect(await approvalRow(world, sessionId)).toMatchObject({ status });
    }
  });
});

describeOnStacks('approvals with several instances', (stack) => {
  verifies(
    ['V-24', 'V-25'],
    'a decision at the desk of another instance reaches the one that has the session',
    async () => {
      await using world = await World.create(stack());
      const [mine, others] = [counting(), counting()];
      // Its ticks are far apart: what it does, it does because of the bell.
      const owner = await serveRisky(world, { leaseMs: 600_000 }, { executor: mine.executor });
      await world.submit({ inputs: { name: 'yes' } });
      await world.submit({ inputs: { name: 'no' } });
      await waitingAt(owner.approvals, 2);
      const other = await serveRisky(world, { leaseMs: 600_000 }, { executor: others.executor });
      const listed = await other.approvals.list();
      const [yes, no] = ['yes', 'no'].map((name) => listed.find(({ task }) => task.inputs.name === name));
      await other.approvals.approve(yes?.sessionId ?? '', { approver: 'ada' });
      expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
      await other.approvals.deny(no?.sessionId ?? '', { approver: 'ada' });
      expect(tell(await world.next())).toBe('task_rejected approval_denied');
      expect([mine.runs, others.runs]).toEqual([[yes?.sessionId], []]);
      expect(await owner.approvals.list()).toEqual([]);
    },
  );

  verifies('V-24', 'a decision that reaches the store alone is noticed at the next tick', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const callee = await serveRisky(world, { clock, leaseMs: 600_000 });
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    await storeDesk(world, world.store, clock).approve(sessionId, { approver: 'ada' });
    await world.echo();
    clock.advance(200_000);
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies('V-25', 'many decisions in the store are noticed, however many were made before', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const callee = await serveRisky(world, { clock, leaseMs: 600_000, prefetch: 100 });
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    const row = await approvalRow(world, sessionId);
    // Those of sessions that are not run here: nothing to be done about them.
    const older = Array.from({ length: 600 }, () => ({
      insert: 'approvals',
      row: { ...row, session_id: randomUUID(), status: 'denied', requested_at: 1 },
    }));
    expect(await world.store.commit(older)).toBe('committed');
    await storeDesk(world, world.store, clock).deny(sessionId, { approver: 'ada' });
    clock.advance(200_000);
    expect(tell(await world.next())).toBe('task_rejected approval_denied');
  });

  verifies('V-24', 'a session whose owner leaves waits with another for its decision', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    const sessionId = await pending(world);
    const { executor, runs } = counting();
    const second = await serveRisky(world, {}, { executor });
    await first.close();
    await second.approvals.approve(sessionId, { approver: 'ada' });
    expect(await world.hearOut()).toEqual([...STARTED_SECOND, ...DONE]);
    expect(runs).toEqual([sessionId]);
  });
});
