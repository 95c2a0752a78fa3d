import { expect } from 'vitest';
import { GATE_STEPS } from '../../../callee/gate/policy.ts';
import {
  acceptKnownCallers,
  type CallerRights,
  type CapabilityOptions,
  createCallee,
  type Policy,
  type VendorCheck,
} from '../../../callee/index.ts';
import type { Capability } from '../../../schemas/types.ts';
import { ManualClock } from '../../../testing/manual-clock.ts';
import { SecondCaller } from '../../support/second-caller.ts';
import { describeOnStacks } from '../../support/stacks.ts';
import { verifies } from '../../support/verifies.ts';
import { TASK, tell, World } from '../../support/world.ts';

interface Served {
  readonly policy?: Policy;
  readonly capability?: CapabilityOptions;
  readonly declaration?: Partial<Capability>;
  readonly clock?: ManualClock;
  readonly gateTimeoutMs?: number;
}

/** Serves tasks and notes whether one ever ran. */
async function serve(world: World, { capability, declaration, ...options }: Served): Promise<string[]> {
  const runs: string[] = [];
  const callee = await world.callee(options);
  callee.capability(
    { ...TASK, ...declaration },
    async (_, run) => {
      runs.push(run.sessionId);
      return { outputs: {} };
    },
    capability,
  );
  await callee.start();
  return runs;
}

/** What the store says of the session of a submit. */
async function stateOf(world: World, messageId: string): Promise<unknown> {
  const answer = await world.store.get('answers', [world.calleeId, world.callerId, messageId]);
  return (await world.store.get('sessions', [String(answer?.session_id)]))?.state;
}

const boom = (): never => {
  throw new Error('No answer from the directory');
};

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
    const runs = await serve(world, { policy: acceptKnownCallers([world.callerId]) });
    for (const capability of ['test.task', 'test.other', 'hcp.describe']) {
      await beta.submit({ capability });
      const answer = await beta.next();
      expect([capability, tell(answer)]).toEqual([capability, 'task_rejected unauthorized']);
      expect(answer).toMatchObject({ payload: { suggestion: expect.stringContaining('access') } });
    }
    expect(runs).toEqual([]);
    await world.submit();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies(
    ['HCP-301', 'HCP-302'],
    'a caller gets the capabilities it was granted, and can always ask which',
    async () => {
      await using world = await World.create(stack());
      const runs = await serve(world, {
        policy: acceptKnownCallers({ [world.callerId]: { capabilities: ['test.more'] } }),
      });
      await world.submit();
      expect(tell(await world.next())).toBe('task_rejected forbidden');
      await world.submit({ capability: 'test.more' });
      const unknown = await world.next();
      expect(tell(unknown)).toBe('task_rejected capability_not_found');
      expect(unknown).toMatchObject({ payload: { suggestion: 'Offered are hcp.describe' } });
      await world.submit({ capability: 'hcp.describe' });
      expect((await world.hear(4)).at(-1)).toMatchObject({
        payload: { outputs: { capabilities: [{ name: 'hcp.describe' }] } },
      });
      expect(runs).toEqual([]);
    },
  );

  verifies(['V-51', 'HCP-301'], 'data above the limit of its caller is forbidden, the rest is welcome', async () => {
    await using world = await World.create(stack());
    const beta = new SecondCaller(world);
    await beta.listen();
    const callers = { [world.callerId]: {}, [beta.callerId]: { dataLimit: 'T4' } } as const;
    await serve(world, { policy: acceptKnownCallers(callers) });
    for (const data_classification of ['T3', 'T4'] as const) {
      await world.submit({ constraints: { data_classification } });
      const answer = await world.next();
      expect(tell(answer)).toBe('task_rejected forbidden');
      expect(answer).toMatchObject({ payload: { reason_message: expect.stringContaining(data_classification) } });
    }
    for (const data_classification of ['T1', 'T2'] as const) {
      await world.submit({ constraints: { data_classification } });
      expect(await world.next()).toMatchObject({ type: 'task_accepted', payload: { data_classification } });
      await world.hearOut();
    }
    await beta.submit({ constraints: { data_classification: 'T4' } });
    expect(await beta.next()).toMatchObject({ type: 'task_accepted', payload: { data_classification: 'T4' } });
  });

  verifies('HCP-313', 'a task that names no class counts as what the policy says', async () => {
    await using world = await World.create(stack());
    const policy = { ...acceptKnownCallers([world.callerId]), defaultDataClassification: 'T3' } as const;
    await serve(world, { policy });
    await world.submit();
    expect(tell(await world.next())).toBe('task_rejected forbidden');
    await world.submit({ constraints: { data_classification: 'T1' } });
    expect(await world.next()).toMatchObject({ type: 'task_accepted', payload: { data_classification: 'T1' } });
  });

  verifies(['V-63', 'HCP-309'], 'envelope and token are the callee’s, whatever the caller sends', async () => {
    await using world = await World.create(stack());
    const envelope = { parameters: { temperature: { max: 80, unit: '°C', hard_limit: true } } };
    await serve(world, { capability: { envelope } });
    await world.submit({ safety_envelope: { parameters: {} }, session_token: 'mine' } as object);
    const accepted = await world.next();
    expect(accepted).toMatchObject({ type: 'task_accepted', payload: { safety_envelope: envelope } });
    expect(accepted.payload).not.toMatchObject({ session_token: 'mine' });
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies('HCP-309', 'an envelope can be made for each task', async () => {
    await using world = await World.create(stack());
    const envelope: CapabilityOptions['envelope'] = async ({ inputs }) => ({
      parameters: { temperature: { max: Number(inputs.volume) * 10, unit: '°C', hard_limit: true } },
    });
    await serve(world, { capability: { envelope } });
    for (const volume of [3, 7]) {
      await world.submit({ inputs: { volume } });
      expect(await world.next()).toMatchObject({
        payload: { safety_envelope: { parameters: { temperature: { max: volume * 10 } } } },
      });
      await world.hearOut();
    }
  });
});

describeOnStacks('the checks of a vendor', (stack) => {
  /** What the gate's own steps find wrong with a task, up to a step. */
  const faulty = { inputs: { bad: true }, constraints: { data_classification: 'T4' } } as const;

  verifies('HCP-301', 'each comes behind its step: what that step refuses it never sees', async () => {
    await using world = await World.create(stack());
    const seen: string[] = [];
    let refusing = '';
    const checks = GATE_STEPS.map(
      (after): VendorCheck => ({
        after,
        check: ({ callerId, task }) => {
          if (task.capability === 'test.echo') return undefined;
          seen.push(after);
          expect(callerId).toBe(world.callerId);
          return after === refusing ? { reasonCode: `no_${after}`, message: 'No', suggestion: 'Do not' } : undefined;
        },
      }),
    );
    const policy = { ...acceptKnownCallers([world.callerId]), checks };
    const runs = await serve(world, { policy });
    for (const [index, step] of GATE_STEPS.entries()) {
      refusing = step;
      const messageId = await world.submit();
      expect(await world.next()).toMatchObject({
        type: 'task_rejected',
        payload: { reason_code: `no_${step}`, reason_message: 'No', suggestion: 'Do not', in_reply_to: messageId },
      });
      expect(seen.splice(0)).toEqual(GATE_STEPS.slice(0, index + 1));
    }
    expect(runs).toEqual([]);
    await world.submit({ constraints: faulty.constraints });
    expect(tell(await world.next())).toBe('task_rejected forbidden');
    expect(seen.splice(0)).toEqual(['identity', 'access', 'capability']);
    refusing = '';
    await world.submit();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    expect(seen).toEqual([...GATE_STEPS]);
  });

  verifies('HCP-301', 'several behind one step are asked in turn, each as the object it is', async () => {
    await using world = await World.create(stack());
    class Quota implements VendorCheck {
      readonly after = 'access';
      #left = 1;
      check() {
        return this.#left-- > 0 ? undefined : { reasonCode: 'quota', message: 'Enough for today' };
      }
    }
    const last: VendorCheck = { after: 'access', check: () => ({ reasonCode: 'last', message: 'No' }) };
    await serve(world, { policy: { ...acceptKnownCallers([world.callerId]), checks: [new Quota(), last] } });
    const told = [];
    for (let i = 0; i < 2; i++) {
      await world.submit();
      told.push(tell(await world.next()));
    }
    expect(told).toEqual(['task_rejected last', 'task_rejected quota']);
  });
});

describeOnStacks('a gate that fails', (stack) => {
  const rejecting = () => Promise.reject(new Error('No answer from the directory'));
  const known = (world: World, more: Partial<Policy> = {}): Policy => ({
    ...acceptKnownCallers([world.callerId]),
    ...more,
  });
  const places: readonly [place: string, served: (world: World, fail: () => never) => Served][] = [
    ['the directory of callers', (_, fail) => ({ policy: { callers: fail } })],
    ['a check', (world, check) => ({ policy: known(world, { checks: [{ after: 'risk', check }] }) })],
    ['the assessor', (_, assess) => ({ capability: { risk: { baseline: 'R1', assess } } })],
    ['the envelope', (_, envelope) => ({ capability: { envelope } })],
  ];
  const ways: readonly [way: string, fail: () => never][] = [
    ['throws', boom],
    ['rejects', rejecting as () => never],
    ['rejects with nothing at all', (() => Promise.reject(undefined)) as () => never],
  ];
  for (const [place, served] of places) {
    for (const [way, fail] of ways) {
      verifies('V-53', `${place} that ${way} rejects the task, which never runs`, async () => {
        await using world = await World.create(stack());
        const runs = await serve(world, served(world, fail));
        const messageId = await world.submit();
        expect(tell(await world.next())).toBe('task_rejected internal_error');
        expect(await stateOf(world, messageId)).toBe('REJECTED');
        expect(runs).toEqual([]);
        const failures = world.logged(/"level":"error".*The gate failed/);
        expect(failures).toHaveLength(1);
        expect(JSON.stringify(world.received.map(({ body }) => Buffer.from(body).toString()))).not.toContain(
          'directory',
        );
      });
    }
  }

  const nonsense: Readonly<Record<string, readonly unknown[]>> = {
    callers: [
      null,
      true,
      'yes',
      7,
      [],
      ['test.task'],
      { accept: true },
      { riskLimit: 'R9' },
      { riskLimit: 3 },
      { riskLimit: null },
      { dataLimit: 'T0' },
      { dataLimit: ['T4'] },
      { capabilities: 'test.task' },
      { capabilities: [/.*/] },
      { capabilities: {} },
    ],
    check: [
      null,
      true,
      false,
      'fine',
      0,
      {},
      [],
      { accept: true },
      { reasonCode: 7, message: 'No' },
      { reasonCode: '', message: 'An empty code' },
      { reasonCode: 'forbidden' },
      { reasonCode: 'forbidden', message: 7 },
      { reasonCode: 'forbidden', message: 'x'.repeat(2_000_000) },
      { reasonCode: 'forbidden', message: 'No', suggestion: {} },
    ],
    assess: [
      undefined,
      null,
      true,
      'R1',
      {},
      [null],
      [7],
      ['R1'],
      [{}],
      [{ level: 'R9', because: 'It is hot' }],
      [{ level: 1, because: 'It is cold' }],
      [{ level: 'r1', because: 'It is cold' }],
    ],
    envelope: [
      undefined,
      null,
      true,
      'none',
      [],
      { parameters: 'hot' },
      { parameters: { temperature: { max: '80' } } },
      { prohibited_actions: 'all' },
      { emergency_procedures: { heat: 'missing' } },
      { emergency_procedures: { heat: 'toString' } },
      { prohibited_actions: ['x'.repeat(2_000_000)] },
    ],
  };
  const saying = (world: World, place: string): Served => {
    const answer = ({ task }: { task: { inputs: Record<string, unknown> } }) =>
      nonsense[place]?.[Number(task.inputs.index)] as never; // nonsense on purpose
    if (place === 'callers') return { policy: { callers: answer } };
    if (place === 'check') return { policy: known(world, { checks: [{ after: 'inputs', check: answer }] }) };
    if (place === 'assess') return { capability: { risk: { baseline: 'R1', assess: answer } } };
    return { capability: { envelope: (task) => answer({ task }) } };
  };
  for (const [place, answers] of Object.entries(nonsense)) {
    verifies(['V-53', 'HCP-302'], `nonsense for ${place} rejects the task, whatever the nonsense`, async () => {
      await using world = await World.create(stack());
      const runs = await serve(world, {
        ...saying(world, place),
        declaration: { constraints: { concurrent_limit: 1 } },
      });
      for (const index of answers.keys()) {
        const messageId = await world.submit({ inputs: { index } });
        const what = JSON.stringify(answers[index])?.slice(0, 80);
        expect([what, tell(await world.next())]).toEqual([
          what,
          expect.stringMatching(/^task_rejected (unauthorized|forbidden|internal_error)$/),
        ]);
        expect(await stateOf(world, messageId)).toBe('REJECTED');
      }
      expect(runs).toEqual([]);
      // Whatever was taken on the way has been given back.
      expect(await world.store.scan('slots', 'key', { where: [world.calleeId] })).toEqual([]);
    });
  }

  verifies('V-53', 'a policy that never answers rejects the task when its time is up', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>();
    const { promise: never, resolve: decideTooLate } = Promise.withResolvers<CallerRights>();
    const callers: Policy['callers'] = ({ task }) => {
      if (task.capability !== 'test.task') return {};
      tellAsked();
      return never;
    };
    const runs = await serve(world, { policy: { callers }, clock, gateTimeoutMs: 5000 });
    const messageId = await world.submit();
    await asked;
    clock.advance(4999);
    await world.echo();
    clock.advance(1);
    expect(tell(await world.next())).toBe('task_rejected internal_error');
    decideTooLate({});
    await world.echo();
    expect([await stateOf(world, messageId), runs]).toEqual(['REJECTED', []]);
  });
});
