import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ApprovalDesk } from '../../callee/index.ts';
import { assertDecided, commentOn, type Decision, hearEnds } from '../support/approval-outcomes.ts';
import { RISKY, storeDesk } from '../support/approval-room.ts';
import { CalleeProcess, type CalleeProcessOptions } from '../support/callee-process.ts';
import { seededRandom } from '../support/random.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const KILLS = Number(process.env.HCP_KILLS ?? 20);
const TASKS = 20;
const TIME_LIMIT_MS = 120_000 + KILLS * 5000;

/** Every task of it is R3 and needs approval. It looks for decisions ten times a second. */
function startProcess(
  { transportUrl, storeUrl }: Stack,
  { calleeId, callerId }: World,
  options: Partial<CalleeProcessOptions> = {},
): CalleeProcess {
  const declaration = { safety: { ...RISKY.safety, risk_ceiling: 'R3' as const } };
  const names = { transportUrl, storeUrl, calleeId, callerId, instanceId: 'one', prefetch: 100 };
  return new CalleeProcess({ ...names, leaseMs: 300, declaration, ...options });
}

/** Submits so many tasks and hears that a human decides about them. */
async function pending(world: World, count: number): Promise<string[]> {
  const task = { extensions: { 'approval/1': {} }, inputs: { script: [{ checkpoint: 'done' }] } };
  for (let i = 0; i < count; i++) await world.submit(task);
  const heard = await world.hearFresh(count);
  expect(heard.map(tell)).toEqual(heard.map(() => 'E1 x-approval-pending'));
  return heard.map(({ session_id }) => String(session_id));
}

async function decide(desk: ApprovalDesk, sessionId: string, decision: Decision): Promise<void> {
  if (decision === 'approve') await desk.approve(sessionId, { approver: 'ada' });
  else await desk.deny(sessionId, { approver: 'ada', comment: commentOn(sessionId) });
}

describeOnStacks('a callee that is killed while people decide', (stack) => {
  verifies(['V-24', 'V-25', 'HCP-119'], 'still waits for them after a kill before anybody decided', async () => {
    await using world = await World.create(stack());
    const first = startProcess(stack(), world);
    await first.ready();
    const [yes, no] = (await pending(world, 2)) as [string, string]; // two were asked for
    await first.kill();
    await using second = startProcess(stack(), world);
    await second.ready();
    const decisions = new Map<string, Decision>([
      [yes, 'approve'],
      [no, 'deny'],
    ]);
    const desk = storeDesk(world, world.store);
    for (const [sessionId, decision] of decisions) await decide(desk, sessionId, decision);
    await hearEnds(world, decisions.keys());
    expect(await assertDecided(world, decisions)).toContain('closed COMPLETED task_completed');
  });

  verifies(['V-24', 'V-25', 'HCP-119'], 'obeys a decision it was killed before it could act on', async () => {
    await using world = await World.create(stack());
    // Looks for decisions too rarely to see this one.
    const first = startProcess(stack(), world, { leaseMs: 600_000 });
    await first.ready();
    const [yes, no] = (await pending(world, 2)) as [string, string]; // two were asked for
    first.signal('SIGSTOP');
    const decisions = new Map<string, Decision>([
      [yes, 'approve'],
      [no, 'deny'],
    ]);
    const desk = storeDesk(world, world.store);
    for (const [sessionId, decision] of decisions) await decide(desk, sessionId, decision);
    await first.kill();
    await using second = startProcess(stack(), world);
    await second.ready();
    await hearEnds(world, decisions.keys());
    expect(await assertDecided(world, decisions)).toContain('closed COMPLETED task_completed');
  });

  verifies(
    ['V-24', 'V-25', 'HCP-111', 'HCP-119'],
    `obeys ${TASKS} decisions, each once, through ${KILLS} SIGKILLs at random moments`,
    async () => {
      const random = seededRandom('HCP_SEED');
      await using world = await World.create(stack());
      const desk = storeDesk(world, world.store);
      const decisions = new Map<string, Decision>();
      let callee = startProcess(stack(), world);
      try {
        await callee.ready();
        const undecided = await pending(world, TASKS);
        const decideNext = async () => {
          const sessionId = undecided.shift();
          if (sessionId === undefined) return;
          const decision = random() < 0.7 ? 'approve' : 'deny';
          decisions.set(sessionId, decision);
          await decide(desk, sessionId, decision);
        };
        for (let kill = 0; kill < KILLS; kill++) {
          // It runs and looks, or is anywhere between its start and its work.
          if (random() < 0.7) await callee.ready();
          while (random() < TASKS / (TASKS + KILLS)) await decideNext();
          await delay(random() * 250);
          await callee.kill();
          callee = startProcess(stack(), world);
        }
        while (undecided.length > 0) await decideNext();
        await hearEnds(world, decisions.keys());
      } finally {
        await callee.kill();
      }
      expect(decisions.size).toBe(TASKS);
      const ends = await assertDecided(world, decisions);
      // One that was killed after its start and before its first checkpoint cannot be continued, and says so.
      const allowed = ['closed COMPLETED task_completed', 'closed FAILED callee_restarted'];
      const others = ends.filter((end) => !allowed.includes(end) && end !== 'task_rejected approval_denied');
      expect(others).toEqual([]);
      const counts = Object.entries(Object.groupBy(ends, (end) => end)).map(([end, all]) => `${all?.length} ${end}`);
      console.log(`approvals: ${KILLS} kills, ${counts.join(', ')} (seed ${random.seed})`);
    },
    TIME_LIMIT_MS,
  );

  verifies(
    ['V-25', 'HCP-119'],
    'rejects each task once when it is killed while their time runs out',
    async () => {
      const random = seededRandom('HCP_SEED');
      await using world = await World.create(stack());
      const approvalTimeout = 'PT2S';
      let callee = startProcess(stack(), world, { approvalTimeout });
      try {
        await callee.ready();
        const sessionIds = await pending(world, TASKS);
        const rows = await Promise.all(sessionIds.map((sessionId) => world.store.get('approvals', [sessionId])));
        const [first = 0] = rows.map((row) => Number(row?.expires_at)).toSorted((a, b) => a - b);
        await delay(first - Date.now() + random() * 100);
        for (let kill = 0; kill < 3; kill++) {
          await callee.kill();
          callee = startProcess(stack(), world, { approvalTimeout });
          // Recovering is where the rest expires.
          await delay(random() * 1500);
        }
        await hearEnds(world, sessionIds);
        await assertDecided(world, new Map(sessionIds.map((sessionId) => [sessionId, 'none'])));
      } finally {
        await callee.kill();
      }
    },
    TIME_LIMIT_MS,
  );
});
