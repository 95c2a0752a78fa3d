import { expect } from 'vitest';
import { acceptKnownCallers, createCallee, type Policy } from '../../callee/index.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

/** Serves tasks under `policy` and notes whether one ever ran. */
async function serveUnder(world: World, policy: Policy, options: { clock?: ManualClock; gateTimeoutMs?: number } = {}) {
  const runs: string[] = [];
  await world.serve(
    async (_, run) => {
      runs.push(run.sessionId);
      return { outputs: {} };
    },
    { policy, ...options },
  );
  return runs;
}

/** What the store says of the session of a submit. */
async function stateOf(world: World, messageId: string): Promise<unknown> {
  const answer = await world.store.get('answers', [world.calleeId, world.callerId, messageId]);
  return (await world.store.get('sessions', [String(answer?.session_id)]))?.state;
}

describeOnStacks('the policy of a callee', (stack) => {
  verifies(['V-49', 'HCP-302'], 'without a policy nobody is served', async () => {
    await using world = await World.create(stack());
    await using callee = createCallee({
      calleeId: world.calleeId,
      transport: await world.connect(),
      store: world.store,
    });
    callee.capability(TASK, async () => ({ outputs: {} }));
    await callee.start();
    const messageId = await world.submit();
    expect(tell(await world.next())).toBe('task_rejected unauthorized');
    expect(await stateOf(world, messageId)).toBe('REJECTED');
  });

  verifies(['V-49', 'HCP-302'], 'a caller the policy does not name is unauthorized', async () => {
    await using world = await World.create(stack());
    const beta = new SecondCaller(world);
    await beta.listen();
    const runs = await serveUnder(world, acceptKnownCallers([world.callerId]));
    await beta.submit();
    const answer = await beta.next();
    expect(tell(answer)).toBe('task_rejected unauthorized');
    expect(answer).toMatchObject({ payload: { suggestion: expect.stringContaining('access') } });
    expect(runs).toEqual([]);
    await world.submit();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies('HCP-305', 'each known caller has a risk limit of its own', async () => {
    await using world = await World.create(stack());
    const beta = new SecondCaller(world);
    await beta.listen();
    const policy = acceptKnownCallers({ [world.callerId]: { riskLimit: 'R1' }, [beta.callerId]: { riskLimit: 'R2' } });
    const safety = { ...TASK.safety, risk_ceiling: 'R2' } as const;
    await world.serve(async () => ({ outputs: {} }), { policy }, { safety });
    await world.submit();
    expect(tell(await world.next())).toBe('task_rejected risk_too_high');
    await beta.submit();
    expect(tell(await beta.next())).toBe('task_accepted');
  });

  verifies('HCP-309', 'the policy gives the safety envelope, whatever the caller sends', async () => {
    await using world = await World.create(stack());
    const safetyEnvelope = { parameters: { temperature: { max: 80, unit: '°C', hard_limit: true } } };
    await serveUnder(world, () => ({ accept: true, safetyEnvelope }));
    await world.submit({ safety_envelope: { parameters: {} } } as object);
    expect(await world.next()).toMatchObject({ type: 'task_accepted', payload: { safety_envelope: safetyEnvelope } });
  });

  verifies('HCP-108', 'a policy refuses in its own words, and hears who asks for what', async () => {
    await using world = await World.create(stack());
    const { promise: asked, resolve: tellAsked } = Promise.withResolvers<object>();
    await serveUnder(world, (request) => {
      tellAsked(request);
      return { accept: false, reasonCode: 'quota', message: 'Enough for today', suggestion: 'Come back tomorrow' };
    });
    const messageId = await world.submit({ inputs: { to: 3 } });
    expect(await world.next()).toMatchObject({
      type: 'task_rejected',
      payload: {
        reason_code: 'quota',
        reason_message: 'Enough for today',
        suggestion: 'Come back tomorrow',
        in_reply_to: messageId,
      },
    });
    expect(await asked).toMatchObject({ callerId: world.callerId, task: { inputs: { to: 3 } } });
  });

  const broken: readonly [name: string, policy: Policy][] = [
    [
      'throws',
      () => {
        throw new Error('No answer from the directory');
      },
    ],
    ['rejects', () => Promise.reject(new Error('No answer from the directory'))],
    ['throws nothing at all', () => Promise.reject(undefined)],
  ];
  for (const [name, policy] of broken) {
    verifies('V-53', `a policy that ${name} rejects the task, which never runs`, async () => {
      await using world = await World.create(stack());
      const runs = await serveUnder(world, policy);
      const messageId = await world.submit();
      expect(tell(await world.next())).toBe('task_rejected internal_error');
      expect(await stateOf(world, messageId)).toBe('REJECTED');
      expect(runs).toEqual([]);
      expect(world.logged(/"level":"error".*The gate failed/)).toHaveLength(1);
    });
  }

  const nonsense: readonly unknown[] = [
    undefined,
    null,
    true,
    'yes',
    {},
    { accept: 'true' },
    { accept: 1 },
    { accept: false },
    { accept: false, reasonCode: '', message: 'An empty code' },
    { accept: false, reasonCode: 'forbidden' },
    { accept: false, reasonCode: 'forbidden', message: 7 },
    { accept: false, reasonCode: 'forbidden', message: 'x'.repeat(300_000) },
    { accept: false, reasonCode: 'forbidden', message: 'No', suggestion: {} },
    { accept: true, riskLimit: 'R9' },
    { accept: true, riskLimit: 3 },
    { accept: true, riskLimit: 'high' },
    { accept: true, riskLimit: null },
    { accept: true, safetyEnvelope: { parameters: 'hot' } },
    { accept: true, safetyEnvelope: 'none' },
  ];
  verifies('V-53', 'a policy that talks nonsense rejects the task, whatever the nonsense', async () => {
    await using world = await World.create(stack());
    const runs = await serveUnder(world, ({ task }) => nonsense[Number(task.inputs.index)] as never);
    for (const index of nonsense.keys()) {
      const messageId = await world.submit({ inputs: { index } });
      const answer = await world.next();
      expect([JSON.stringify(nonsense[index])?.slice(0, 80), tell(answer)]).toEqual([
        JSON.stringify(nonsense[index])?.slice(0, 80),
        expect.stringMatching(/^task_rejected (forbidden|internal_error)$/),
      ]);
      expect(await stateOf(world, messageId)).toBe('REJECTED');
    }
    expect(runs).toEqual([]);
  });

  verifies('V-53', 'a policy that never answers rejects the task when its time is up', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>();
    const { promise: never, resolve: decideTooLate } = Promise.withResolvers<{ accept: true }>();
    const runs = await serveUnder(
      world,
      ({ task }) => {
        if (task.capability !== 'test.task') return { accept: false, reasonCode: 'forbidden', message: 'An echo' };
        tellAsked();
        return never;
      },
      { clock, gateTimeoutMs: 5000 },
    );
    const messageId = await world.submit();
    await asked;
    clock.advance(4999);
    await world.echo();
    clock.advance(1);
    expect(tell(await world.next())).toBe('task_rejected internal_error');
    decideTooLate({ accept: true });
    await world.echo();
    expect([await stateOf(world, messageId), runs]).toEqual(['REJECTED', []]);
  });
});
