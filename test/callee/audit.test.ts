import { createHash, randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, verifyAudit } from '../../callee/index.ts';
import { canonicalJson } from '../../shared/canonical-json.ts';
import type { Row, Store, Write } from '../../shared/store/store.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { type Audited, audited, auditKinds, serveFurnace } from '../support/furnace.ts';
import { GuardProcess } from '../support/guard-process.ts';
import { bytes, submitObject, wireProperties } from '../support/messages.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

const INPUTS = { sample: 7, notes: ['b', 'a'] };
const INPUTS_SHA256 = createHash('sha256').update(canonicalJson(INPUTS)).digest('hex');

async function sessionOf({ store, calleeId, callerId }: World, messageId: string): Promise<string> {
  return String((await store.get('answers', [calleeId, callerId, messageId]))?.session_id);
}

/** What is on record about no session. */
async function unbound(world: World): Promise<Audited[]> {
  const records = await audited(world.store, world.calleeId, '');
  return records.filter(({ kind }) => kind !== 'opened');
}

/** A store that tells what each of its commits carries. */
function watched(inner: Store): { store: Store; commits: (readonly Write[])[] } {
  const commits: (readonly Write[])[] = [];
  const commit: Store['commit'] = (writes) => {
    commits.push(writes);
    return inner.commit(writes);
  };
  return { store: { ...inner, commit }, commits };
}

/** Which kinds go on record together with each state a session is put into. */
function recordedWith(commits: readonly (readonly Write[])[], sessionId: string): string[] {
  return commits.flatMap((writes) => {
    const kinds = writes.flatMap((write) =>
      'insert' in write && write.insert === 'audit' && write.row.session_id === sessionId
        ? [String(write.row.kind)]
        : [],
    );
    return writes.flatMap((write) => {
      const set: Row = 'patch' in write && write.patch === 'sessions' && write.key[0] === sessionId ? write.set : {};
      const changes = [set.state, set.violation && 'violated'].filter(
        (change) => change !== undefined && change !== null,
      );
      return changes.map((change) => `${change}: ${kinds.join(' ')}`);
    });
  });
}

describeOnStacks('the audit of a callee', (stack) => {
  verifies('HCP-312', 'has each decision: who, what, which inputs, which risk, with which result, when', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    await serveFurnace(world, async () => ({ outputs: {} }), {
      clock,
      policy: acceptKnownCallers({ [world.callerId]: { riskLimit: 'R1' } }),
      risk: {
        baseline: 'R1',
        assess: ({ task }) => (task.inputs.sample === 13 ? [{ level: 'R2', because: 'Odd' }] : []),
      },
      declaration: { safety: { ...TASK.safety, risk_ceiling: 'R2' } },
    });
    const common = { caller_id: world.callerId, capability: 'test.task' };
    const accepted = await world.submit({ inputs: INPUTS });
    await world.hearOut();
    const unknown = await world.submit({ inputs: INPUTS, capability: 'test.unknown' });
    expect(tell(await world.next())).toBe('task_rejected capability_not_found');
    const risky = await world.submit({ inputs: { ...INPUTS, sample: 13 } });
    expect(tell(await world.next())).toBe('task_rejected risk_too_high');

    const decisions = [];
    for (const messageId of [accepted, unknown, risky]) {
      const [decision] = await audited(world.store, world.calleeId, await sessionOf(world, messageId));
      expect(decision).toMatchObject({ kind: 'decision', at: new Date(clock.now()).toISOString() });
      expect(decision?.details.message_id).toBe(messageId);
      decisions.push(decision?.details);
    }
    expect(decisions).toMatchObject([
      {
        ...{ ...common, version: '1.0.0', inputs_sha256: INPUTS_SHA256, result: 'accepted' },
        ...{ risk_level: 'R1', data_classification: 'T2' },
      },
      { ...common, capability: 'test.unknown', inputs_sha256: INPUTS_SHA256, result: 'capability_not_found' },
      { ...common, result: 'risk_too_high', risk_level: 'R2', reason: expect.any(String) },
    ]);
    expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
  });

  verifies(['HCP-312', 'HCP-130'], 'has the refusal of a submit that could not even be read', async () => {
    await using world = await World.create(stack());
    await world.serve(untilStopped);
    const broken = submitObject({ caller_id: world.callerId, inputs: 'no object' }, { message_id: randomUUID() });
    await world.send(bytes(broken), wireProperties({ appId: world.callerId }));
    expect(tell(await world.next())).toBe('task_rejected invalid_input');
    const other = submitObject({ caller_id: world.callerId }, { message_id: randomUUID(), hcp_version: '2.0' });
    await world.send(bytes(other), wireProperties({ appId: world.callerId }));
    expect(tell(await world.next())).toBe('task_rejected unsupported_version');
    expect(await unbound(world)).toMatchObject([
      {
        kind: 'decision',
        details: { caller_id: world.callerId, message_id: broken.message_id, result: 'invalid_input' },
      },
      {
        kind: 'decision',
        details: { caller_id: world.callerId, message_id: other.message_id, result: 'unsupported_version' },
      },
    ]);
    expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
  });

  verifies('HCP-312', 'has aborts, and commands that were refused', async () => {
    await using world = await World.create(stack());
    await serveFurnace(world, untilStopped);
    await world.submit({ inputs: INPUTS });
    const { sessionId, token } = await world.started();
    await world.abort(sessionId, { session_token: 'wrong' });
    await world.abort(sessionId, {}, 'mallory');
    await world.abort(sessionId, { session_token: token, reason: 'Changed my mind' });
    await world.hearOut();
    await world.abort(sessionId, { session_token: 'wrong' });
    await world.echo();
    const records = await audited(world.store, world.calleeId, sessionId);
    expect(records.map(({ kind }) => kind)).toEqual([
      ...['decision', 'command_refused', 'command_refused', 'abort', 'ended', 'command_refused'],
    ]);
    expect(records[1]?.details).toMatchObject({ type: 'abort', app_id: world.callerId, why: 'its token is wrong' });
    expect(records[2]?.details).toMatchObject({ type: 'abort', app_id: 'mallory', why: 'another caller sent it' });
    expect(records[3]?.details).toMatchObject({
      ...{ caller_id: world.callerId, capability: 'test.task', inputs_sha256: INPUTS_SHA256 },
      ...{ risk_level: 'R1', result: 'aborting', reason: 'Changed my mind' },
    });
    expect(records[4]?.details).toMatchObject({ state: 'ABORTED', reason: 'cleanup_complete' });
    expect(records[5]?.details).toMatchObject({ state: 'ABORTED', why: 'its token is wrong' });
    expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
  });

  verifies(['HCP-312', 'HCP-306'], 'has what people approved, and who they were', async () => {
    await using world = await World.create(stack());
    const callee = await serveFurnace(world, async () => ({ outputs: {} }), {
      policy: acceptKnownCallers({ [world.callerId]: { riskLimit: 'R3' } }),
      declaration: { safety: { ...TASK.safety, risk_ceiling: 'R3', requires_human_approval: true } },
    });
    const [yes, no] = [await world.submit({ inputs: INPUTS }), await world.submit({ inputs: INPUTS })];
    while ((await callee.approvals.list()).length < 2) await new Promise(setImmediate);
    const [approved, denied] = [await sessionOf(world, yes), await sessionOf(world, no)];
    await callee.approvals.approve(approved, { approver: 'Ada', comment: 'Fine' });
    await world.hearOut();
    await callee.approvals.deny(denied, { approver: 'Bob' });
    expect(tell(await world.next())).toBe('task_rejected approval_denied');
    const records = await audited(world.store, world.calleeId, approved);
    expect(records.map(({ kind }) => kind)).toEqual(['approval', 'approval', 'decision', 'ended']);
    expect(records[0]?.details).toMatchObject({ status: 'pending', risk_level: 'R3', caller_id: world.callerId });
    expect(records[1]?.details).toMatchObject({
      status: 'approved',
      approver: 'Ada',
      verdict: 'approve',
      comment: 'Fine',
    });
    expect(records[2]?.details).toMatchObject({ result: 'accepted', approvers: ['Ada'], inputs_sha256: INPUTS_SHA256 });
    const refusal = await audited(world.store, world.calleeId, denied);
    expect(refusal.map(({ kind, details }) => [kind, details.result ?? details.status])).toEqual([
      ['approval', 'pending'],
      ['approval', 'denied'],
      ['decision', 'approval_denied'],
    ]);
    expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
  });

  verifies('HCP-312', 'is written in the same commit as what it tells of', async () => {
    await using world = await World.create(stack());
    await using inner = await stack().openStore();
    const { store, commits } = watched(inner);
    await serveFurnace(
      world,
      async (task, run) => {
        if (task.inputs.heat) await run.guard.act('heat', { temperature: task.inputs.heat });
        return task.inputs.ends ? { outputs: {} } : untilStopped(task, run);
      },
      { store },
    );
    const ends: Record<string, string> = {};
    for (const [name, inputs] of Object.entries({ ended: { ends: true }, hot: { heat: 2000 }, aborted: {} })) {
      await world.submit({ inputs });
      const { sessionId } = await world.started();
      if (name === 'aborted') await world.abort(sessionId);
      await world.hearOut();
      ends[name] = sessionId;
    }
    const refused = await world.submit({ capability: 'test.unknown' });
    expect(tell(await world.next())).toBe('task_rejected capability_not_found');
    const rejected = await sessionOf(world, refused);
    expect(recordedWith(commits, String(ends.ended))).toEqual(['RUNNING: decision', 'COMPLETED: ended']);
    expect(recordedWith(commits, String(ends.hot))).toEqual([
      'RUNNING: decision',
      expect.stringMatching(/^violated: violation( emergency)?$/),
      'FAILED: ended',
    ]);
    expect(recordedWith(commits, String(ends.aborted))).toEqual([
      'RUNNING: decision',
      'ABORTING: abort',
      'ABORTED: ended',
    ]);
    expect(recordedWith(commits, rejected)).toEqual(['REJECTED: decision']);
  });

  verifies('HCP-312', 'is intact after several instances have written it at the same time', async () => {
    await using world = await World.create(stack());
    for (const instanceId of ['one', 'two', 'three']) {
      await serveFurnace(
        world,
        async ({ inputs }, run) => {
          await run.guard.act('heat', { temperature: inputs.heat });
          return { outputs: {} };
        },
        { instanceId, prefetch: 2 },
      );
    }
    for (let i = 0; i < 30; i++) await world.submit({ inputs: { heat: i % 3 === 0 ? 2000 : 20 } });
    const sessions = new Set<string>();
    for (let closed = 0; closed < 30; ) {
      const message = await world.next();
      if (!tell(message).includes('closed')) continue;
      closed++;
      sessions.add(String(message.session_id));
    }
    const kinds = (await Promise.all([...sessions].map((id) => auditKinds(world, id)))).flat();
    const counts = ['decision', 'violation', 'emergency', 'ended'].map(
      (wanted) => kinds.filter((k) => k === wanted).length,
    );
    expect(counts).toEqual([30, 10, 10, 30]);
    expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
  });

  verifies(
    'HCP-312',
    'has the decision of every session that was seen to run, also when the process is killed at once',
    async () => {
      await using world = await World.create(stack());
      for (let life = 0; life < 3; life++) {
        await using furnace = await GuardProcess.start(stack(), world, 'quick');
        for (let i = 0; i < 10; i++) await world.submit({ inputs: { heat: i % 2 === 0 ? 2000 : 20 } });
        while ((await world.next()).type !== 'task_accepted');
        await furnace.kill();
      }
      const rows = await world.store.scan('sessions', 'by_owner', { where: [world.calleeId, 1, 'one'], limit: 1000 });
      const seen: string[] = [];
      for (const { session_id, state, violation } of rows) {
        const kinds = await auditKinds(world, String(session_id));
        if (state !== 'PENDING') expect(kinds, String(state)).toContain('decision');
        if (violation !== null) expect(kinds).toContain('violation');
        seen.push(String(state));
      }
      expect(seen.length).toBeGreaterThan(0);
      expect(await verifyAudit(world.store, world.calleeId)).toEqual([]);
    },
    120_000,
  );
});
