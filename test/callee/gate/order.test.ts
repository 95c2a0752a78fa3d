import { expect } from 'vitest';
import type { CapabilityOptions, Executor, Policy } from '../../../callee/index.ts';
import type { TaskSubmitPayload } from '../../../schemas/types.ts';
import { untilStopped } from '../../support/executors.ts';
import { bytes, submitObject, wireProperties } from '../../support/messages.ts';
import { SecondCaller } from '../../support/second-caller.ts';
import { describeOnStacks } from '../../support/stacks.ts';
import { verifies } from '../../support/verifies.ts';
import { TASK, tell, World } from '../../support/world.ts';

/** Everything that can be wrong with a task at once. */
const FAULTS = {
  structure: { intent: '' },
  capability: { capability: 'test.other' },
  version: { capability_version: '^9.0.0' },
  data: { constraints: { data_classification: 'T4' } },
  inputs: { inputs: { to: 'many', hot: true } },
  schema: { expected_output: { schema: { type: 'nonsense' } } },
  extension: { extensions: { 'acme.org/colour/1': { required: true } } },
} satisfies Record<string, Partial<TaskSubmitPayload>>;

type Fault = keyof typeof FAULTS | 'identity' | 'access' | 'risk' | 'capacity';

/** The order of HCP-301: each fault with what it is rejected for once all before it are gone. */
const ORDER: readonly [fault: Fault, told: string][] = [
  ['structure', 'task_rejected invalid_input /payload/intent'],
  ['identity', 'task_rejected unauthorized'],
  ['access', 'task_rejected forbidden capability'],
  ['capability', 'task_rejected capability_not_found'],
  ['version', 'task_rejected capability_version_unsupported'],
  ['data', 'task_rejected forbidden data'],
  ['inputs', 'task_rejected invalid_input /payload/inputs/to'],
  ['schema', 'task_rejected invalid_input /payload/expected_output/schema'],
  ['extension', 'task_rejected invalid_input /payload/extensions'],
  ['risk', 'task_rejected risk_too_high'],
  ['capacity', 'task_rejected resource_unavailable'],
];

const RISKY: CapabilityOptions = {
  risk: {
    baseline: 'R1',
    rules: [
      {
        when: { properties: { inputs: { properties: { hot: { const: true } }, required: ['hot'] } } },
        level: 'R3',
        because: 'It is hot',
      },
    ],
  },
};

const LIMITED = {
  ...TASK,
  safety: { ...TASK.safety, risk_ceiling: 'R3' },
  input_schema: { type: 'object', properties: { to: { type: 'integer' } } },
  constraints: { concurrent_limit: 1 },
} as const;

describeOnStacks('the order of the gate', (stack) => {
  verifies(
    ['HCP-301', 'V-50'],
    'a task with all faults at once is rejected for the first, then for each next',
    async () => {
      await using world = await World.create(stack());
      const beta = new SecondCaller(world);
      await beta.listen();
      let present = new Set<Fault>();
      const policy: Policy = {
        callers: ({ callerId }) => {
          if (callerId === beta.callerId) return {};
          if (present.has('identity')) return undefined;
          return present.has('access') ? { capabilities: ['test.more'] } : {};
        },
      };
      const executor: Executor = (task, run) => untilStopped(task, run);
      const callee = await world.callee({ policy });
      callee.capability(LIMITED, executor, RISKY);
      await callee.start();
      await beta.submit(); // takes the only place
      expect(tell(await beta.next())).toBe('task_accepted');

      for (const [index, [, expected]] of ORDER.entries()) {
        present = new Set(ORDER.slice(index).map(([fault]) => fault));
        const faults = [...present].filter((fault) => fault in FAULTS).map((fault) => Reflect.get(FAULTS, fault));
        const inputs = present.has('risk') ? { hot: true } : {};
        const task = Object.assign({ capability: 'test.task', caller_id: world.callerId, inputs }, ...faults);
        await world.send(
          bytes(submitObject(task, { message_id: crypto.randomUUID() })),
          wireProperties({ appId: world.callerId }),
        );
        const answer = await world.next();
        expect(toldOf(answer), `with ${[...present].join(', ')}`).toBe(expected);
      }
      // Each was seen through to its end: nothing of them ran, nothing waits.
      await world.echo();
    },
  );

  verifies('V-50', 'a caller without access learns nothing about its inputs', async () => {
    await using world = await World.create(stack());
    const policy = { callers: { [world.callerId]: { capabilities: ['test.more'] } } };
    await world.serve(
      async () => ({ outputs: {} }),
      { policy },
      { input_schema: { type: 'object', required: ['to'] } },
    );
    await world.submit();
    const answer = await world.next();
    expect(tell(answer)).toBe('task_rejected forbidden');
    expect(JSON.stringify(answer)).not.toContain('inputs');
  });
});

/** The answer, with the place or the thing its text points at. */
function toldOf(answer: Awaited<ReturnType<World['next']>>): string {
  if (answer.type !== 'task_rejected') return tell(answer);
  const { reason_code, reason_message } = answer.payload;
  const about = /(\/payload[\w/]*)/.exec(reason_message)?.[1] ?? '';
  const thing = reason_code === 'forbidden' ? (/ (capability|data)\b/.exec(reason_message)?.[1] ?? '') : '';
  return [tell(answer), about, thing].filter((part) => part !== '').join(' ');
}
