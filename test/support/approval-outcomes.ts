import { expect } from 'vitest';
import { verifyAudit } from '../../callee/index.ts';
import { type Heard, tell, type World } from './world.ts';

/** What people said of a session; `none`: nothing, in time. */
export type Decision = 'approve' | 'deny' | 'none';

/** Hears until each of these sessions has ended. */
export async function hearEnds(world: World, sessionIds: Iterable<string>): Promise<void> {
  const open = new Set(sessionIds);
  for (const message of heardBefore(world)) if (isEnd(message)) open.delete(String(message.session_id));
  while (open.size > 0) {
    const message = await world.next();
    if (isEnd(message)) open.delete(String(message.session_id));
  }
}

/** The comment of a denial, other for each session. */
export function commentOn(sessionId: string): string {
  return `not ${sessionId}`;
}

/**
 * That every decision was obeyed, once: what was approved started once and ended once, the others were rejected once for
 * the right reason, and nothing ran without an approval that was used up. Answers how each session ended.
 */
export async function assertDecided(world: World, decisions: ReadonlyMap<string, Decision>): Promise<string[]> {
  const heard = Map.groupBy(heardBefore(world), ({ session_id }) => String(session_id));
  const ends: string[] = [];
  for (const [sessionId, decision] of decisions) {
    const told = (heard.get(sessionId) ?? []).map(tell);
    const row = await world.store.get('approvals', [sessionId]);
    const votes = JSON.parse(String(row?.votes)).map(({ verdict }: { verdict: string }) => verdict);
    if (decision === 'approve') {
      expect(told.slice(0, 4), sessionId).toEqual([
        'E1 x-approval-pending',
        'task_accepted',
        'E2 session_created',
        'E3 PENDING→RUNNING safety_check_passed',
      ]);
      const times = (pattern: RegExp) => told.filter((line) => pattern.test(line)).length;
      expect([/^task_accepted/, /safety_check_passed/, /^task_(completed|failed)/, / closed /].map(times)).toEqual([
        1, 1, 1, 1,
      ]);
      // What has a checkpoint is continued, whatever happens.
      if (times(/checkpoint_created/) > 0) expect(times(/^task_completed/), sessionId).toBe(1);
      const sequences = told.flatMap((line) => /^E(\d+)/.exec(line)?.[1] ?? []);
      expect(sequences, 'no hole, in order').toEqual(sequences.map((_, index) => String(index + 1)));
    } else {
      const reason = decision === 'deny' ? 'approval_denied' : 'approval_timeout';
      expect(told, sessionId).toEqual(['E1 x-approval-pending', `task_rejected ${reason}`]);
    }
    const rejection = heard.get(sessionId)?.at(-1)?.payload;
    if (decision === 'deny') {
      expect(rejection).toMatchObject({ reason_message: `The task was denied: ${commentOn(sessionId)}` });
    }
    expect([row?.status, votes]).toEqual(decision === 'none' ? ['expired', []] : ['used', [decision]]);
    ends.push(told.at(-1)?.replace(/^E\d+ /, '') ?? '');
  }
  await assertNothingElseRan(world);
  expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
  return ends;
}

/** Whatever is in the store of the callee: all that ran was approved. */
async function assertNothingElseRan({ store, calleeId }: World): Promise<void> {
  const rows = await store.scan('sessions', 'by_closed', { where: [calleeId], limit: 1000 });
  for (const { session_id, running_since } of rows) {
    if (running_since === null) continue;
    const approval = await store.get('approvals', [String(session_id)]);
    expect(approval).toMatchObject({ status: 'used' });
    expect(JSON.parse(String(approval?.votes))).toMatchObject([{ verdict: 'approve' }]);
  }
}

/** Everything so far, each message once: what was not known to be confirmed is sent again, unchanged. */
function heardBefore(world: World): Heard[] {
  const bodies = new Map<string, string>();
  for (const { body } of world.received) {
    const text = Buffer.from(body).toString();
    const { message_id } = JSON.parse(text);
    expect(bodies.get(message_id) ?? text, 'a message id has one content').toBe(text);
    bodies.set(message_id, text);
  }
  return [...bodies.values()].map((text) => JSON.parse(text));
}

function isEnd(message: Heard): boolean {
  if (message.type === 'task_rejected') return true;
  return message.type === 'event' && message.payload.event_type === 'session_closed';
}
