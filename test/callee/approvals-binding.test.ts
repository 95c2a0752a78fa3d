import { expect } from 'vitest';
import type { Write } from '../../shared/store/store.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import {
  approvalRow,
  counting,
  type RiskyOptions,
  recorded,
  serveRisky,
  storeDesk,
  waitingAt,
  waitingOne,
  withGet,
} from '../support/approval-room.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const HOUR_MS = 3_600_000;

/** What a callee may come back with, each another thing to approve. */
const CHANGES: readonly (readonly [what: string, after: RiskyOptions])[] = [
  ['another version of the capability', { declaration: { version: '1.0.1' } }],
  ['another risk', { capability: { risk: { baseline: 'R4' } } }],
  ['other limits', { capability: { envelope: { parameters: { speed: { max: 3 } } } } }],
];

/** A task that was approved, for a callee that is down by now. */
async function approvedWhileDown(world: World): Promise<{ sessionId: string; subject: string }> {
  const first = await serveRisky(world);
  await world.submit();
  const { sessionId, subject } = await waitingOne(first.approvals);
  await first.close();
  expect(await storeDesk(world, world.store).approve(sessionId, { approver: 'ada' })).toBe('approved');
  return { sessionId, subject };
}

async function tamper({ store }: World, ...writes: Write[]): Promise<void> {
  expect(await store.commit(writes)).toBe('committed');
}

describeOnStacks('what a human approved', (stack: () => Stack) => {
  for (const [what, after] of CHANGES) {
    verifies('HCP-306', `is asked anew, and not run, when the callee comes back with ${what}`, async () => {
      await using world = await World.create(stack());
      const before = await approvedWhileDown(world);
      const { executor, runs } = counting();
      const callee = await serveRisky(world, {}, { executor, ...after });
      const asked = await waitingOne(callee.approvals);
      await world.echo();
      expect(runs).toEqual([]);
      expect(asked).toMatchObject({ sessionId: before.sessionId, status: 'pending', votes: [] });
      expect(asked.subject).not.toBe(before.subject);
      await callee.approvals.approve(asked.sessionId, { approver: 'grace' });
      await world.hearOut();
      expect(runs).toEqual([before.sessionId]);
      expect(await recorded(world, asked.sessionId, 'decision')).toMatchObject([{ approvers: ['grace'] }]);
    });
  }

  verifies('HCP-306', 'is asked anew, and not run, when it is not what is on record', async () => {
    await using world = await World.create(stack());
    const { sessionId, subject } = await approvedWhileDown(world);
    await tamper(world, { patch: 'approvals', key: [sessionId], set: { subject: 'f'.repeat(64) } });
    const { executor, runs } = counting();
    const callee = await serveRisky(world, {}, { executor });
    expect(await waitingOne(callee.approvals)).toMatchObject({ sessionId, subject, votes: [] });
    await world.echo();
    expect(runs).toEqual([]);
  });

  verifies('HCP-306', 'is asked anew, and not run, when the stored task was changed', async () => {
    await using world = await World.create(stack());
    const { sessionId } = await approvedWhileDown(world);
    const row = await world.store.get('sessions', [sessionId]);
    const request = String(row?.request).replace('"inputs":{}', '"inputs":{"power":9}');
    await tamper(world, { patch: 'sessions', key: [sessionId], set: { request } });
    const { executor, runs } = counting();
    const callee = await serveRisky(world, {}, { executor });
    expect(await waitingOne(callee.approvals)).toMatchObject({ sessionId, task: { inputs: { power: 9 } } });
    await world.echo();
    expect(runs).toEqual([]);
  });

  verifies('V-25', 'is asked anew in the time that was left', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const options = { clock, approvalTimeout: 'PT1H' };
    const first = await serveRisky(world, options);
    await world.submit();
    const { expiresAt } = await waitingOne(first.approvals);
    clock.advance(HOUR_MS - 1000);
    await first.close();
    const second = await serveRisky(world, options, { declaration: { version: '2.0.0' } });
    const asked = await waitingOne(second.approvals);
    expect([asked.expiresAt, asked.requestedAt]).toEqual([expiresAt, clock.now()]);
    clock.advance(1000);
    expect(tell(await world.next())).toBe('task_rejected approval_timeout');
  });

  verifies('HCP-306', 'does not count for a question that replaced the one somebody looked at', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    await world.submit();
    const { sessionId, subject } = await waitingOne(first.approvals);
    await first.close();
    const second = await serveRisky(world, {}, { declaration: { version: '2.0.0' } });
    const changed = await approvalRow(world, sessionId, (row) => row.subject !== subject);
    const vote = { approver: 'ada', subject };
    await expect(second.approvals.approve(sessionId, vote)).rejects.toMatchObject({
      code: 'approval_not_open',
      reason: 'changed',
    });
    await expect(second.approvals.deny(sessionId, vote)).rejects.toMatchObject({ reason: 'changed' });
    const now = { approver: 'ada', subject: String(changed.subject) };
    expect(await second.approvals.approve(sessionId, now)).toBe('approved');
    await world.hearOut();
  });

  verifies('HCP-306', 'does not count for a question that replaces it while somebody votes', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    await world.submit();
    const { sessionId, subject } = await waitingOne(first.approvals);
    const old = await approvalRow(world, sessionId);
    await first.close();
    const second = await serveRisky(world, {}, { declaration: { version: '2.0.0' } });
    await approvalRow(world, sessionId, (row) => row.subject !== subject);
    // It was read a moment before.
    const stale = [old];
    const store = withGet(world.store, async (table, key) => stale.pop() ?? world.store.get(table, key));
    const late = storeDesk(world, store).approve(sessionId, { approver: 'ada' });
    await expect(late).rejects.toMatchObject({ code: 'approval_not_open', reason: 'changed' });
    expect(await second.approvals.list()).toMatchObject([{ sessionId, votes: [] }]);
  });

  verifies('HCP-306', 'is not needed any more when the callee comes back with less risk', async () => {
    await using world = await World.create(stack());
    const first = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(first.approvals);
    await first.close();
    const second = await serveRisky(world, {}, { capability: { risk: { baseline: 'R2' } } });
    expect((await world.hearOut()).slice(0, 2)).toEqual(['task_accepted', 'E1 session_created']);
    expect(await second.approvals.list()).toEqual([]);
    await expect(second.approvals.deny(sessionId, { approver: 'ada' })).rejects.toMatchObject({ reason: 'expired' });
    const [decision] = await recorded(world, sessionId, 'decision');
    expect(decision).toMatchObject({ result: 'accepted', risk_level: 'R2' });
    expect(decision).not.toHaveProperty('approvers');
  });

  verifies('HCP-306', 'runs once: the same task again is another question', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counting();
    const callee = await serveRisky(world, {}, { executor });
    await world.submit({ inputs: { name: 'same' } });
    const first = await waitingOne(callee.approvals);
    await callee.approvals.approve(first.sessionId, { approver: 'ada' });
    await world.hearOut();
    await world.submit({ inputs: { name: 'same' } });
    const second = await waitingOne(callee.approvals);
    expect([second.subject, second.sessionId !== first.sessionId]).toEqual([first.subject, true]);
    await world.echo();
    expect(runs).toEqual([first.sessionId]);
  });

  verifies('HCP-306', 'starts nothing once it is used up', async () => {
    await using world = await World.create(stack());
    const { sessionId } = await approvedWhileDown(world);
    await tamper(world, { patch: 'approvals', key: [sessionId], set: { status: 'used' } });
    const { executor, runs } = counting();
    await serveRisky(world, {}, { executor });
    expect(tell(await world.next())).toBe('task_rejected approval_timeout');
    expect(runs).toEqual([]);
  });

  verifies('HCP-104', 'or denied is no more work once that is done, and is forgotten with its session', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const callee = await serveRisky(world, { clock, retention: 'P1D' });
    await world.submit();
    await world.submit();
    const [yes, no] = await waitingAt(callee.approvals, 2);
    await callee.approvals.approve(yes?.sessionId ?? '', { approver: 'ada' });
    await world.hearOut();
    await callee.approvals.deny(no?.sessionId ?? '', { approver: 'ada' });
    expect(tell(await world.next())).toBe('task_rejected approval_denied');
    for (const status of ['approved', 'denied']) {
      expect(await world.store.scan('approvals', 'by_status', { where: [world.calleeId, status] })).toEqual([]);
    }
    await callee.close();
    clock.advance(2 * 24 * HOUR_MS);
    await serveRisky(world, { clock, retention: 'P1D' });
    clock.advance(HOUR_MS);
    await gone(world, yes?.sessionId ?? '');
    await gone(world, no?.sessionId ?? '');
  });
});

/** Resolves when nothing is stored of an approval. */
async function gone({ store }: World, sessionId: string): Promise<void> {
  while (await store.get('approvals', [sessionId])) await new Promise((resolve) => setImmediate(resolve));
}
