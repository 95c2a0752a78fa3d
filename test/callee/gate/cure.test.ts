import { describe, expect, it } from 'vitest';
import { offer } from '../../../callee/capabilities.ts';
import { acceptKnownCallers, type RiskAssessment } from '../../../callee/index.ts';
import type { TaskSubmitPayload } from '../../../schemas/types.ts';
import { applyPatch, type PatchOperation } from '../../../shared/json-patch.ts';
import { describeOnStacks } from '../../support/stacks.ts';
import { verifies } from '../../support/verifies.ts';
import { TASK, tell, World } from '../../support/world.ts';
import { GateRoom } from './gate-room.ts';

const done = async () => ({ outputs: {} });

const OVEN = {
  ...TASK,
  version: '2.1.0',
  safety: { ...TASK.safety, risk_ceiling: 'R4' },
  input_schema: {
    type: 'object',
    properties: { heat: { type: 'integer', maximum: 300 }, minutes: { type: 'integer', default: 10 } },
    required: ['heat', 'minutes'],
    additionalProperties: false,
  },
} as const;

const RISK: RiskAssessment = {
  baseline: 'R1',
  rules: [
    {
      when: { properties: { inputs: { properties: { heat: { exclusiveMinimum: 200 } } } } },
      level: 'R3',
      because: 'It gets hot',
      suggestion: 'Stay at 200 or below',
      cure: [{ op: 'replace', path: '/inputs/heat', value: 200 }],
    },
  ],
};

/** Wrong in four ways: the version, the heat, what is missing and what is too much; and then too risky. */
const WRONG = { capability_version: '^1.0.0', inputs: { heat: 999, colour: 'red' } };

describe('cure/1', () => {
  const patchOf = async (gate: GateRoom, task: Partial<TaskSubmitPayload>): Promise<unknown> => {
    const judgement = await gate.judge({ extensions: { 'cure/1': {} }, ...task });
    return 'terms' in judgement ? 'accepted' : judgement.rejection.extensions?.['cure/1'];
  };

  it('heals one objection behind the other, and tells all of it at once', async () => {
    await using gate = await GateRoom.open([offer(OVEN, done, { risk: RISK })]);
    expect(await patchOf(gate, WRONG)).toEqual({
      patch: expect.arrayContaining([
        { op: 'replace', path: '/capability_version', value: '2.1.0' },
        { op: 'remove', path: '/inputs/colour' },
        { op: 'add', path: '/inputs/minutes', value: 10 },
        { op: 'replace', path: '/inputs/heat', value: 200 },
      ]),
    });
  });

  const hopeless: readonly [name: string, task: Partial<TaskSubmitPayload>][] = [
    ['an unknown capability', { capability: 'test.other' }],
    ['data that is too sensitive', { constraints: { data_classification: 'T4' } }],
    ['inputs somebody has to think about', { inputs: { minutes: 3 } }],
    ['an output schema that is none', { inputs: { heat: 1, minutes: 1 }, expected_output: { schema: { type: 'no' } } }],
    ['something curable before something that is not', { ...WRONG, constraints: { data_classification: 'T4' } }],
    ['an unknown caller', { ...WRONG, caller_id: 'beta' }],
  ];
  for (const [name, task] of hopeless) {
    it(`has none for ${name}`, async () => {
      await using gate = await GateRoom.open([offer(OVEN, done, { risk: RISK })]);
      expect(await patchOf(gate, task)).toBeUndefined();
    });
  }

  const odd: readonly [name: string, cure: unknown][] = [
    ['does not help', [{ op: 'replace', path: '/inputs/heat', value: 250 }]],
    ['fits no such task', [{ op: 'replace', path: '/context/purpose', value: 'study' }]],
    ['leaves no task', [{ op: 'replace', path: '/intent', value: '' }]],
    ['asks for what no task may ask for', [{ op: 'add', path: '/constraints', value: { max_duration: '1h' } }]],
    ['is no patch', [{ op: 'forget' }]],
    ['reaches where it must not', [{ op: 'add', path: '/__proto__/heat', value: 1 }]],
    ['makes another of it', [{ op: 'replace', path: '/caller_id', value: 'beta' }]],
  ];
  for (const [name, cure] of odd) {
    it(`is not told when a rule's own ${name}, and the reason stays`, async () => {
      const [rule] = RISK.rules ?? [];
      const risk = { ...RISK, rules: [{ ...rule, cure }] } as RiskAssessment; // odd on purpose
      await using gate = await GateRoom.open([offer(OVEN, done, { risk })]);
      const judgement = await gate.judge({ inputs: { heat: 250, minutes: 1 }, extensions: { 'cure/1': {} } });
      expect(judgement).toMatchObject({
        rejection: { reason_code: 'risk_too_high', suggestion: 'Stay at 200 or below' },
      });
      expect(judgement).not.toHaveProperty('rejection.extensions');
      expect(gate.lines).toEqual([]);
    });
  }
});

describeOnStacks('cure/1', (stack) => {
  verifies(['cure/1', 'HCP-314'], 'a rejected task that asks is told how to be accepted, and then is', async () => {
    await using world = await World.create(stack());
    const callee = await world.callee({ policy: acceptKnownCallers([world.callerId]) });
    callee.capability(OVEN, async ({ inputs }) => ({ outputs: inputs }), { risk: RISK });
    await callee.start();
    await world.submit(WRONG);
    const plain = await world.next();
    expect(tell(plain)).toBe('task_rejected capability_version_unsupported');
    expect(plain.payload).not.toHaveProperty('extensions');
    const task = { ...WRONG, extensions: { 'cure/1': { required: true } } };
    await world.submit(task);
    const rejected = await world.next();
    expect(tell(rejected)).toBe('task_rejected capability_version_unsupported');
    const { patch } = Object(rejected.payload).extensions['cure/1'] as { patch: PatchOperation[] };
    await world.submit(applyPatch(task, patch) as typeof task);
    const heard = await world.hear(4);
    expect(heard[0]).toMatchObject({
      type: 'task_accepted',
      payload: { risk_level: 'R1', extensions: { 'cure/1': {} } },
    });
    expect(heard[3]).toMatchObject({ type: 'task_completed', payload: { outputs: { heat: 200, minutes: 10 } } });
  });
});
