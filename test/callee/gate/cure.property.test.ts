import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CapabilityOptions, offer } from '../../../callee/capabilities.ts';
import type { Capability, TaskSubmitPayload } from '../../../schemas/types.ts';
import { applyPatch, type PatchOperation } from '../../../shared/json-patch.ts';
import { TASK } from '../../support/world.ts';
import { GateRoom } from './gate-room.ts';

const done = async () => ({ outputs: {} });
const small = fc.integer({ min: -20, max: 20 });

/** What the inputs may be: numbers within bounds, some needed, some with defaults, others perhaps not at all. */
const inputSchemas = fc
  .record({
    low: small,
    width: fc.integer({ min: 0, max: 20 }),
    unit: fc.option(fc.constantFrom(2, 5, 0.5), { nil: undefined }),
    type: fc.constantFrom('integer', 'number'),
    needed: fc.subarray(['heat', 'speed', 'mode']),
    isClosed: fc.boolean(),
    hasDefaults: fc.boolean(),
  })
  .map(({ low, width, unit, type, needed, isClosed, hasDefaults }) => ({
    type: 'object',
    properties: {
      heat: {
        type,
        minimum: low,
        maximum: low + width,
        ...(unit && { multipleOf: unit }),
        ...(hasDefaults && { default: low }),
      },
      speed: {
        type: 'number',
        exclusiveMinimum: low,
        exclusiveMaximum: low + width + 1,
        ...(hasDefaults && { default: low + 0.5 }),
      },
      mode: { enum: ['slow'], ...(hasDefaults && { default: 'slow' }) },
    },
    required: needed,
    ...(isClosed && { additionalProperties: false }),
  }));

/** What makes a task risky, with a way out that may help, help too little, or fit no task at all. */
const risks = fc
  .array(
    fc.record({
      above: small,
      level: fc.constantFrom('R1', 'R2', 'R3', 'R5'),
      cure: fc.option(
        fc.oneof(
          small.map((value): PatchOperation => ({ op: 'replace', path: '/inputs/heat', value })),
          small.map((value): PatchOperation => ({ op: 'add', path: '/inputs/heat', value })),
          fc.constantFrom<PatchOperation>(
            { op: 'remove', path: '/inputs/heat' },
            { op: 'replace', path: '/context/purpose', value: 'study' },
            { op: 'replace', path: '/intent', value: '' },
            { op: 'replace', path: '/capability', value: 'test.other' },
            { op: 'add', path: '/constraints', value: { max_duration: '1h' } },
          ),
        ),
        { nil: undefined },
      ),
    }),
    { maxLength: 3 },
  )
  .map((rules) => ({
    baseline: 'R1' as const,
    rules: rules.map(({ above, level, cure }) => ({
      when: { properties: { inputs: { properties: { heat: { exclusiveMinimum: above } }, required: ['heat'] } } },
      level: level as 'R1', // one of the five
      because: `Above ${above}`,
      ...(cure && { cure: [cure] }),
    })),
  }));

const versions = fc.uniqueArray(fc.constantFrom('1.0.0', '1.4.2', '2.0.0', '3.0.0-beta.1'), {
  minLength: 1,
  maxLength: 2,
});

const offers = fc
  .record({ version: versions, input_schema: inputSchemas, risk: risks })
  .map(({ version, input_schema, risk }) =>
    version.map((each) => {
      const declaration: Capability = {
        ...TASK,
        version: each,
        input_schema,
        safety: { ...TASK.safety, risk_ceiling: 'R5' },
      };
      const options: CapabilityOptions = { risk };
      return [declaration, options] as const;
    }),
  );

const number = fc.oneof(fc.integer({ min: -50, max: 50 }), fc.double({ min: -50, max: 50, noNaN: true }));
const tasks = fc.record(
  {
    capability_version: fc.constantFrom('*', '1.x', '^2.0.0', '>=3.0.0', 'banana', ''),
    inputs: fc.record(
      {
        heat: fc.oneof(number, number.map(String), fc.constant('hot')),
        speed: number,
        mode: fc.constantFrom('slow', 'fast'),
        other: fc.jsonValue({ maxDepth: 1 }),
      },
      { requiredKeys: [] },
    ),
    context: fc.constantFrom({}, { purpose: 'show' }),
  },
  { requiredKeys: ['inputs'] },
);

/** The whole task, with the wish for a cure. */
function asking(task: object): TaskSubmitPayload {
  const extensions = { 'cure/1': {} };
  return { capability: 'test.task', caller_id: 'alpha', intent: 'Do it', inputs: {}, ...task, extensions };
}

/** Applies the cure of a rejected task and has that judged: how often there was one. */
async function tryCure(gate: GateRoom, task: object): Promise<number> {
  const plain = await gate.judge(task);
  const judgement = await gate.judge(asking(task));
  // A vendor's odd cure is no reason to say anything else.
  expect(gate.lines).toEqual([]);
  expect('terms' in judgement).toBe('terms' in plain);
  if ('terms' in judgement) return 0;
  const { extensions, ...rejection } = judgement.rejection;
  expect(plain).toEqual({ rejection });
  if (extensions === undefined) return 0;
  const { patch } = extensions['cure/1'] as { patch: PatchOperation[] };
  const cured = applyPatch(asking(task), patch) as TaskSubmitPayload; // if it is none, the gate says so
  expect(await gate.verdict(cured)).toBe('accepted');
  return 1;
}

describe('a cure', () => {
  it('that the gate gives makes the task acceptable, and is given only to whoever asked', async () => {
    let cures = 0;
    await fc.assert(
      fc.asyncProperty(offers, fc.array(tasks, { minLength: 10, maxLength: 20 }), async (offered, several) => {
        const capabilities = offered.map(([declaration, options]) => offer(declaration, done, options));
        await using gate = await GateRoom.open(capabilities);
        for (const task of several) cures += await tryCure(gate, task);
      }),
      { numRuns: 40 },
    );
    // Else nothing was proven.
    expect(cures).toBeGreaterThan(20);
  }, 60_000);
});
