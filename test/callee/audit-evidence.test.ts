import { expect } from 'vitest';
import {
  acceptKnownCallers,
  type Callee,
  createKeyRing,
  openStoredKeyRing,
  verifyAudit,
  verifyEvidence,
} from '../../callee/index.ts';
import { systemClock } from '../../shared/clock.ts';
import { untilStopped } from '../support/executors.ts';
import { serveFurnace } from '../support/furnace.ts';
import { seededRandom } from '../support/random.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

/** What a stranger has: the public halves of the keys, and nothing else. */
async function publicKeys({ store, calleeId }: World) {
  const ring = await openStoredKeyRing(store, calleeId, { clock: systemClock });
  return createKeyRing(ring.publicKeys());
}

/** One session of each kind of end. Answers their ids and tokens. */
async function manyEnds(world: World): Promise<{ callee: Callee; sessions: Record<string, string>; tokens: string[] }> {
  const callee = await world.callee({ policy: acceptKnownCallers({ [world.callerId]: { riskLimit: 'R3' } }) });
  const safety = { ...TASK.safety, risk_ceiling: 'R3', requires_human_approval: true } as const;
  callee.capability({ ...TASK, name: 'test.careful', safety }, async () => ({ outputs: {} }));
  callee.capability(
    TASK,
    async (task, run) => {
      await run.progress({ stage: 'begun', message: 'Begun' });
      if (task.inputs.end === 'violated') await run.guard.act('open_door');
      if (task.inputs.end === 'failed') throw new Error('It broke');
      return task.inputs.end === 'completed' ? { outputs: { done: true } } : untilStopped(task, run);
    },
    { envelope: { prohibited_actions: ['open_door'] } },
  );
  await callee.start();
  const sessions: Record<string, string> = {};
  const tokens: string[] = [];
  for (const end of ['completed', 'failed', 'violated', 'aborted']) {
    await world.submit({ inputs: { end } });
    const { sessionId, token } = await world.started();
    if (end === 'aborted') await world.abort(sessionId, { session_token: token, reason: 'Enough' });
    await world.hearOut();
    sessions[end] = sessionId;
    tokens.push(token);
  }
  const rejected = await world.submit({ capability: 'test.unknown' });
  expect(tell(await world.next())).toBe('task_rejected capability_not_found');
  const answer = await world.store.get('answers', [world.calleeId, world.callerId, rejected]);
  sessions.rejected = String(answer?.session_id);
  await world.submit({ capability: 'test.careful' });
  while ((await callee.approvals.list()).length < 1) await new Promise(setImmediate);
  const [waiting] = await callee.approvals.list();
  await callee.approvals.approve(String(waiting?.sessionId), { approver: 'Ada' });
  const approved = await world.started();
  await world.hearOut();
  sessions.approved = approved.sessionId;
  return { callee, sessions, tokens: [...tokens, approved.token] };
}

const STATES: Record<string, string> = {
  ...{ completed: 'COMPLETED', failed: 'FAILED', violated: 'FAILED' },
  ...{ aborted: 'ABORTED', rejected: 'REJECTED', approved: 'COMPLETED' },
};

describeOnStacks('the evidence of a session', (stack) => {
  verifies(
    ['HCP-312', 'HCP-014'],
    'is proven by the public keys alone, whatever its end was, holds no token, and shows every change of a byte',
    async () => {
      await using world = await World.create(stack());
      const { callee, sessions, tokens } = await manyEnds(world);
      const keys = await publicKeys(world);
      const random = seededRandom('HCP_SEED');
      for (const [end, sessionId] of Object.entries(sessions)) {
        const file = await callee.evidence(sessionId);
        const report = await verifyEvidence(file, { keys });
        expect([end, report.findings, report.summary.state, report.sessionId]).toEqual([
          ...[end, [], STATES[end], sessionId],
        ]);
        expect(report.summary.auditRecords).toBeGreaterThan(0);
        for (const token of tokens) expect(file).not.toContain(token);
        const sealed = Buffer.from(file);
        for (let i = 0; i < 60; i++) {
          const at = Math.floor(random() * sealed.length);
          const forged = Buffer.from(sealed);
          forged[at] = Number(forged[at]) ^ (1 << Math.floor(random() * 8));
          const { findings } = await verifyEvidence(forged, { keys });
          expect(findings, `${end}, byte ${at}, seed ${random.seed}`).not.toEqual([]);
        }
        const lines = file.trimEnd().split('\n');
        for (let i = 0; i < lines.length; i++) {
          const { findings } = await verifyEvidence(`${lines.toSpliced(i, 1).join('\n')}\n`, { keys });
          expect(findings, `${end} without line ${i}`).not.toEqual([]);
        }
      }
      expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
    },
    60_000,
  );

  verifies('HCP-312', 'names people, limits and reasons', async () => {
    await using world = await World.create(stack());
    const { callee, sessions } = await manyEnds(world);
    const evidence = async (end: string) => callee.evidence(String(sessions[end]));
    expect(await evidence('approved')).toContain('"approvers":["Ada"]');
    expect(await evidence('violated')).toContain('open_door is prohibited');
    expect(await evidence('aborted')).toContain('"reason":"Enough"');
    expect(await evidence('rejected')).toContain('"result":"capability_not_found"');
  });

  verifies('HCP-312', 'of a session nobody knows, or of a stranger, does not exist', async () => {
    await using world = await World.create(stack());
    const callee = await serveFurnace(world, async () => ({ outputs: {} }));
    await using other = await World.create(stack());
    await serveFurnace(other, async () => ({ outputs: {} }));
    await other.submit();
    const { sessionId } = await other.started();
    await expect(callee.evidence(sessionId)).rejects.toMatchObject({ code: 'session_unknown' });
    await expect(callee.evidence('3fa85f64-5717-4562-b3fc-2c963f66afa6')).rejects.toMatchObject({
      code: 'session_unknown',
    });
  });

  verifies('HCP-312', 'shows that the store was changed behind the callee', async () => {
    await using world = await World.create(stack());
    const { callee, sessions } = await manyEnds(world);
    const keys = await publicKeys(world);
    const sessionId = String(sessions.violated);
    const request = String((await world.store.get('sessions', [sessionId]))?.request);
    const set = { request: request.replace('violated', 'completed') };
    await world.store.commit([{ patch: 'sessions', key: [sessionId], set }]);
    const { findings } = await verifyEvidence(await callee.evidence(sessionId), { keys });
    expect(findings.join()).toMatch(/other inputs than those of the request/);
  });
});
