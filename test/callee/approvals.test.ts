import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { acceptKnownCallers, verifyAudit } from '../../callee/index.ts';
import { parseMessage } from '../../shared/messages/parse.ts';
import { commandQueue } from '../../shared/transport/topology.ts';
import type { Delivery } from '../../shared/transport/transport.ts';
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
  withGet,
} from '../support/approval-room.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const HOUR_MS = 3_600_000;
const STARTED = ['task_accepted', 'E1 session_created', 'E2 PENDING→RUNNING safety_check_passed'];
const DONE = ['task_completed', 'E3 RUNNING→COMPLETED task_completed', 'E4 closed COMPLETED task_completed'];

describeOnStacks('a task that needs approval', (stack) => {
  verifies(['V-23', 'HCP-306'], 'is not asked about below R3: it is accepted at once', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    await world.submit({ inputs: { level: 'R2' } });
    const { sessionId } = await world.started();
    expect(await callee.approvals.list()).toEqual([]);
    expect(await world.store.get('approvals', [sessionId])).toBeUndefined();
  });

  verifies('HCP-306', 'is not asked about where the capability does not want it, whatever the risk', async () => {
    await using world = await World.create(stack());
    const safety = { risk_ceiling: 'R5', requires_human_approval: false, involves_physical_resources: false } as const;
    const callee = await serveRisky(world, {}, { declaration: { safety } });
    await world.submit({ inputs: { level: 'R5' } });
    await world.started();
    expect(await callee.approvals.list()).toEqual([]);
  });

  verifies(['V-24', 'HCP-306'], 'says and does nothing until it is approved, then starts as any other', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counting();
    const callee = await serveRisky(world, {}, { executor });
    await world.submit({ inputs: { level: 'R3' } });
    const { sessionId } = await waitingOne(callee.approvals);
    await world.echo();
    expect(runs).toEqual([]);
    expect(await callee.approvals.approve(sessionId, { approver: 'ada' })).toBe('approved');
    expect(await world.hearOut()).toEqual([...STARTED, ...DONE]);
    expect(runs).toEqual([sessionId]);
    expect(await approvalRow(world, sessionId)).toMatchObject({ status: 'used' });
  });

  verifies(['V-24', 'HCP-101'], 'is acked while it waits: it does not come again', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    await world.submit();
    await waitingOne(callee.approvals);
    await callee.close();
    const marker = await world.submit({ inputs: { marker: true } });
    const first = await new Promise<Delivery>((resolve, reject) => {
      world.transport
        .consume(commandQueue(world.calleeId), (delivery) => {
          delivery.ack();
          resolve(delivery);
        })
        .catch(reject);
    });
    const parsed = parseMessage(first.body, first.properties);
    expect(parsed.ok && parsed.message.message_id).toBe(marker);
  });

  verifies('V-25', 'is rejected when a human denies it, with what that one says', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counting();
    const callee = await serveRisky(world, {}, { executor });
    const messageId = await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    await callee.approvals.deny(sessionId, { approver: 'ada', comment: 'the lab is closed' });
    expect(await world.next()).toMatchObject({
      type: 'task_rejected',
      session_id: null,
      payload: {
        reason_code: 'approval_denied',
        reason_message: 'The task was denied: the lab is closed',
        in_reply_to: messageId,
      },
    });
    await world.echo();
    expect(runs).toEqual([]);
    expect(await recorded(world, sessionId, 'decision')).toMatchObject([{ result: 'approval_denied' }]);
  });

  verifies('V-25', 'is told to be denied also when that one says more than fits into a message', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    await callee.approvals.deny(sessionId, { approver: 'ada', comment: 'no '.repeat(1_000_000) });
    expect(tell(await world.next())).toBe('task_rejected approval_denied');
  });

  verifies('V-25', 'is rejected when nobody has decided in time, and not a moment before', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { executor, runs } = counting();
    const callee = await serveRisky(world, { clock, approvalTimeout: 'PT1H' }, { executor });
    await world.submit();
    const { sessionId, expiresAt } = await waitingOne(callee.approvals);
    expect(expiresAt).toBe(clock.now() + HOUR_MS);
    clock.advance(HOUR_MS - 1);
    await world.echo();
    expect(await callee.approvals.list()).toHaveLength(1);
    clock.advance(1);
    await expect(callee.approvals.approve(sessionId, { approver: 'ada' })).rejects.toMatchObject({
      code: 'approval_not_open',
      reason: 'expired',
    });
    expect(tell(await world.next())).toBe('task_rejected approval_timeout');
    expect(runs).toEqual([]);
    expect(await approvalRow(world, sessionId)).toMatchObject({ status: 'expired' });
    await expect(callee.approvals.approve(sessionId, { approver: 'ada' })).rejects.toMatchObject({ reason: 'expired' });
  });

  verifies('V-25', 'is decided once when a human and the time-out come together', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counting();
    for (let round = 0; round < 5; round++) {
      const clock = new ManualClock();
      const options = { clock, approvalTimeout: 'PT1H', maxDuration: 'P7D' };
      await using callee = await serveRisky(world, options, { executor });
      await world.submit();
      const { sessionId } = await waitingOne(callee.approvals);
      clock.advance(HOUR_MS - 1);
      // The desk's own clock is a little behind.
      const vote = storeDesk(world, world.store, new ManualClock()).approve(sessionId, { approver: 'ada' });
      clock.advance(1);
      const [voted] = await Promise.allSettled([vote]);
      // Whoever came second looks again with a tick.
      await until(
        'the answer',
        async () => {
          clock.advance(4000);
          await approvalRow(world, sessionId);
          return world.unheard;
        },
        (unheard) => unheard > 0,
      );
      const first = tell(await world.next());
      const isApproved = voted.status === 'fulfilled';
      expect(first).toBe(isApproved ? 'task_accepted' : 'task_rejected approval_timeout');
      if (isApproved) await world.hearOut();
      expect(runs.includes(sessionId)).toBe(isApproved);
      expect(await approvalRow(world, sessionId)).toMatchObject({ status: isApproved ? 'used' : 'expired' });
    }
  });

  verifies(['V-24', 'V-25'], 'is started when the approval was stored just before the time-out was', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const desk = storeDesk(world, world.store, new ManualClock());
    const votes: (() => Promise<unknown>)[] = [];
    const store = withGet(world.store, async (table, key) => {
      const row = await world.store.get(table, key);
      if (table === 'approvals') await votes.pop()?.();
      return row;
    });
    const callee = await serveRisky(world, { clock, store, approvalTimeout: 'PT1H', maxDuration: 'P7D' });
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    // Once the callee has read that nobody decided.
    votes.push(() => desk.approve(sessionId, { approver: 'ada' }));
    clock.advance(HOUR_MS);
    await approvalRow(world, sessionId, ({ status }) => status === 'approved');
    await until(
      'the answer',
      async () => {
        clock.advance(4000);
        await approvalRow(world, sessionId);
        return world.unheard;
      },
      (unheard) => unheard > 0,
    );
    expect(await world.hearOut()).toEqual([...STARTED, ...DONE]);
    expect(await approvalRow(world, sessionId)).toMatchObject({ status: 'used' });
  });

  verifies('V-25', 'waits after a restart for the rest of its time', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const options = { clock, approvalTimeout: 'PT1H' };
    const first = await serveRisky(world, options);
    await world.submit();
    await waitingOne(first.approvals);
    clock.advance(HOUR_MS - 1000);
    await first.close();
    const second = await serveRisky(world, options);
    await waitingOne(second.approvals);
    clock.advance(999);
    await world.echo();
    clock.advance(1);
    expect(tell(await world.next())).toBe('task_rejected approval_timeout');
  });

  verifies('V-25', 'is rejected at the start of a callee that was down when its time ran out', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const options = { clock, approvalTimeout: 'PT1H' };
    const first = await serveRisky(world, options);
    await world.submit();
    await waitingOne(first.approvals);
    await first.close();
    clock.advance(HOUR_MS);
    await serveRisky(world, options);
    expect(tell(await world.next())).toBe('task_rejected approval_timeout');
  });

  verifies('V-24', 'starts after a restart when it was approved while the callee was down', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(first.approvals);
    await first.close();
    await storeDesk(world, world.store).approve(sessionId, { approver: 'ada' });
    const { executor, runs } = counting();
    await serveRisky(world, {}, { executor });
    expect(await world.hearOut()).toEqual([...STARTED, ...DONE]);
    expect(runs).toEqual([sessionId]);
  });

  verifies(['V-25', 'HCP-301'], 'gets the human no, not what else the gate has against it by then', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(first.approvals);
    await first.close();
    await storeDesk(world, world.store).deny(sessionId, { approver: 'ada' });
    await serveRisky(world, { policy: acceptKnownCallers([]) });
    expect(tell(await world.next())).toBe('task_rejected approval_denied');
    expect(await approvalRow(world, sessionId)).toMatchObject({ status: 'used' });
  });

  verifies('HCP-301', 'is rejected by the gate when it would not pass any more, approved or not', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(first.approvals);
    await first.close();
    await storeDesk(world, world.store).approve(sessionId, { approver: 'ada' });
    const { executor, runs } = counting();
    const second = await serveRisky(world, { policy: acceptKnownCallers([world.callerId]) }, { executor });
    expect(tell(await world.next())).toBe('task_rejected risk_too_high');
    expect([runs, await second.approvals.list()]).toEqual([[], []]);
    expect(await approvalRow(world, sessionId)).toMatchObject({ status: 'expired' });
  });

  verifies('V-55', 'is not asked about twice when its submit comes again', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    const messageId = await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    for (let i = 0; i < 3; i++) await world.submit({}, messageId);
    await world.echo();
    await until(
      'the repeated submits to be noticed',
      async () => world.logged(/not decided yet/),
      (lines) => lines.length === 3,
    );
    expect(await callee.approvals.list()).toHaveLength(1);
    await callee.approvals.approve(sessionId, { approver: 'ada' });
    expect(await world.hearOut()).toEqual([...STARTED, ...DONE]);
  });

  verifies(
    'HCP-131',
    'takes no place while it waits, and gives back the one it took when it is not accepted',
    async () => {
      await using world = await World.create(stack());
      const constraints = { concurrent_limit: 1 };
      // More than a message can hold: the acceptance cannot be said.
      const envelope = { prohibited_actions: Array.from({ length: 100_000 }, () => randomUUID()) };
      const callee = await serveRisky(world, {}, { declaration: { constraints }, capability: { envelope } });
      await world.submit();
      const { sessionId } = await waitingOne(callee.approvals);
      const slots = () => world.store.scan('slots', 'by_session', { where: [sessionId] });
      expect(await slots()).toEqual([]);
      await callee.approvals.approve(sessionId, { approver: 'ada' });
      expect(tell(await world.next())).toBe('task_rejected internal_error');
      expect(await slots()).toEqual([]);
      expect(await approvalRow(world, sessionId)).toMatchObject({ status: 'expired' });
    },
  );
});

describeOnStacks('an approval desk', (stack) => {
  it('lists what waits, the oldest first, with the task', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const callee = await serveRisky(world, { clock });
    for (const name of ['first', 'second', 'third']) {
      await world.submit({ intent: name, inputs: { level: 'R4', name } });
      await waitingAt(callee.approvals, name === 'first' ? 1 : name === 'second' ? 2 : 3);
      clock.advance(1000);
    }
    const listed = await callee.approvals.list();
    expect(listed.map(({ task }) => [task.intent, task.inputs.name])).toEqual([
      ['first', 'first'],
      ['second', 'second'],
      ['third', 'third'],
    ]);
    expect(listed[0]).toMatchObject({
      callerId: world.callerId,
      calleeId: world.calleeId,
      status: 'pending',
      riskLevel: 'R4',
      needed: 1,
      votes: [],
    });
  });

  verifies('HCP-312', 'puts every vote on record, and who agreed into the decision', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const callee = await serveRisky(world, { clock });
    await world.submit({ inputs: { level: 'R5' } });
    const { sessionId, subject } = await waitingOne(callee.approvals);
    await callee.approvals.approve(sessionId, { approver: 'ada', comment: 'looks safe' });
    await callee.approvals.approve(sessionId, { approver: 'grace' });
    await world.hearOut();
    const at = new Date(clock.now()).toISOString();
    const common = { subject, risk_level: 'R5', caller_id: world.callerId };
    expect(await recorded(world, sessionId, 'approval')).toEqual([
      { ...common, status: 'pending' },
      { ...common, status: 'pending', approver: 'ada', verdict: 'approve', at, comment: 'looks safe' },
      { ...common, status: 'approved', approver: 'grace', verdict: 'approve', at },
    ]);
    expect(await recorded(world, sessionId, 'decision')).toMatchObject([
      { result: 'accepted', risk_level: 'R5', approvers: ['ada', 'grace'] },
    ]);
    expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
  });

  it('wants two people to agree to a task of R5, and not the same one twice', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counting();
    const callee = await serveRisky(world, {}, { executor });
    await world.submit({ inputs: { level: 'R5' } });
    const { sessionId, needed } = await waitingOne(callee.approvals);
    expect(needed).toBe(2);
    expect(await callee.approvals.approve(sessionId, { approver: 'ada' })).toBe('waiting');
    for (const approver of ['ada', ' ada ']) {
      await expect(callee.approvals.approve(sessionId, { approver })).rejects.toMatchObject({
        code: 'approval_not_open',
        reason: 'same_approver',
      });
    }
    await world.echo();
    expect(runs).toEqual([]);
    expect(await callee.approvals.approve(sessionId, { approver: 'grace' })).toBe('approved');
    expect(await world.hearOut()).toEqual([...STARTED, ...DONE]);
  });

  it('denies a task of R5 when one of two people does', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    for (const denier of ['ada', 'grace']) {
      await world.submit({ inputs: { level: 'R5' } });
      const { sessionId } = await waitingOne(callee.approvals);
      await callee.approvals.approve(sessionId, { approver: 'ada' });
      await callee.approvals.deny(sessionId, { approver: denier });
      expect(tell(await world.next())).toBe('task_rejected approval_denied');
    }
  });

  it('has nothing to decide about unknown, decided and foreign tasks', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    const foreign = await serveRisky(world, { calleeId: `${world.calleeId}-2` });
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    const refused = (reason: string) => ({ code: 'approval_not_open', reason });
    await expect(foreign.approvals.approve(sessionId, { approver: 'ada' })).rejects.toMatchObject(refused('unknown'));
    await expect(callee.approvals.deny(randomUUID(), { approver: 'ada' })).rejects.toMatchObject(refused('unknown'));
    await callee.approvals.deny(sessionId, { approver: 'ada' });
    await expect(callee.approvals.approve(sessionId, { approver: 'bob' })).rejects.toMatchObject(refused('decided'));
    await world.next();
    await expect(callee.approvals.approve(sessionId, { approver: 'bob' })).rejects.toMatchObject(refused('decided'));
    await expect(callee.approvals.deny(sessionId, { approver: 'bob' })).rejects.toMatchObject(refused('decided'));
  });

  it('wants to know who decides', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    for (const approver of ['', '  ', undefined as never]) {
      await expect(callee.approvals.approve(sessionId, { approver })).rejects.toThrow(TypeError);
      await expect(callee.approvals.deny(sessionId, { approver })).rejects.toThrow('approver must name who decides');
    }
    expect(await callee.approvals.list()).toMatchObject([{ sessionId, votes: [] }]);
  });

  it('lets one of two people decide who decide at once, and tells the other', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world, { leaseMs: 300 });
    for (let round = 0; round < 5; round++) {
      await world.submit();
      const { sessionId } = await waitingOne(callee.approvals);
      const [yes, no] = await Promise.allSettled([
        callee.approvals.approve(sessionId, { approver: 'ada' }),
        storeDesk(world, world.store).deny(sessionId, { approver: 'grace' }),
      ]);
      const loser = yes.status === 'rejected' ? yes : no;
      expect([yes.status, no.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      expect(loser).toMatchObject({ reason: { code: 'approval_not_open', reason: 'decided' } });
      const votes = JSON.parse(String((await approvalRow(world, sessionId)).votes));
      expect(votes).toMatchObject([{ approver: yes.status === 'fulfilled' ? 'ada' : 'grace' }]);
      if (yes.status === 'fulfilled') expect(await world.hearOut()).toEqual([...STARTED, ...DONE]);
      else expect(tell(await world.next())).toBe('task_rejected approval_denied');
    }
  });
});
