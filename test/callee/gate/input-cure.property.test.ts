import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cureInputs } from '../../../callee/gate/input-cure.ts';
import { applyPatch, type PatchOperation, valueAt } from '../../../shared/json-patch.ts';
import { deepFreeze } from '../../../shared/messages/json-value.ts';

/** A schema, a value that fits it, and values with such faults only as the schema can cure. */
interface Sample {
  readonly schema: object;
  readonly fitting: unknown;
  readonly faulty: fc.Arbitrary<unknown>;
}

const bound = fc.integer({ min: -50, max: 50 });
const anyNumber = fc.oneof(
  fc.integer({ min: -500, max: 500 }),
  fc.integer({ min: -4000, max: 4000 }).map((n) => n / 8),
);
const wholeNumber = fc.integer({ min: -500, max: 500 });

const numbers = fc
  .record({
    low: bound,
    width: fc.integer({ min: 20, max: 100 }),
    opensBelow: fc.boolean(),
    opensAbove: fc.boolean(),
    isWhole: fc.boolean(),
    unit: fc.option(fc.constantFrom(1, 2, 5, 7), { nil: undefined }),
  })
  .map(({ low, width, opensBelow, opensAbove, isWhole, unit }): Sample => {
    const number = isWhole ? wholeNumber : anyNumber;
    return {
      schema: {
        type: isWhole ? 'integer' : 'number',
        [opensBelow ? 'exclusiveMinimum' : 'minimum']: low,
        [opensAbove ? 'exclusiveMaximum' : 'maximum']: low + width,
        ...(unit === undefined ? {} : { multipleOf: unit }),
      },
      fitting: Math.ceil((low + 1) / (unit ?? 1)) * (unit ?? 1),
      faulty: fc.oneof(number, number.map(JSON.stringify)),
    };
  });

const constants = fc.jsonValue({ maxDepth: 1 }).map(
  (value): Sample => ({
    schema: { const: deepFreeze(value) },
    fitting: value,
    faulty: fc.oneof(fc.constant(value), fc.jsonValue({ maxDepth: 1 })),
  }),
);

const leaves = fc.oneof({ weight: 3, arbitrary: numbers }, constants);

function lists(of: fc.Arbitrary<Sample>): fc.Arbitrary<Sample> {
  return of.map(({ schema, fitting, faulty }) => ({
    schema: { type: 'array', items: schema },
    fitting: [fitting],
    faulty: fc.array(faulty, { maxLength: 2 }),
  }));
}

/** Two properties and a fault of its own: with the depth below, never more faults than steps. */
function objects(of: fc.Arbitrary<Sample>): fc.Arbitrary<Sample> {
  const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c/d', 'e~f', 'g h%', '0'), { minLength: 2, maxLength: 2 });
  return fc.tuple(names, of, of).map(([[first = '', second = ''], one, two]) => ({
    schema: {
      type: 'object',
      properties: { [first]: { ...one.schema, default: one.fitting }, [second]: two.schema },
      required: [first],
      additionalProperties: false,
    },
    fitting: { [first]: one.fitting },
    faulty: fc.record({ [first]: one.faulty, [second]: two.faulty, other: fc.jsonValue() }, { requiredKeys: [] }),
  }));
}

const inner = fc.oneof(leaves, lists(leaves));
const samples = objects(fc.oneof(inner, objects(inner)));

const ajv = new Ajv2020({ strict: false, ownProperties: true, validateFormats: false });

function patched(inputs: object, patch: readonly PatchOperation[]): unknown {
  return valueAt(applyPatch({ inputs }, patch), '/inputs');
}

/** A schema with inputs whose faults can all be cured. */
const curable = samples.chain(({ schema, faulty }) => {
  return fc.tuple(fc.constant(schema), faulty as fc.Arbitrary<object>); // objects() makes objects
});

describe('cureInputs', () => {
  it('cures whatever the schema can cure, by operations that are all needed, and leaves the inputs alone', () => {
    fc.assert(
      fc.property(curable, ([schema, inputs]) => {
        const validate = ajv.compile(schema);
        const text = JSON.stringify(inputs);
        const patch = cureInputs(validate, deepFreeze(inputs)) ?? expect.fail('no patch');
        expect(validate(patched(inputs, patch))).toBe(true);
        expect(new Set(patch.map(({ path }) => path)).size).toBe(patch.length);
        for (const operation of patch) {
          const others = patch.filter((other) => other !== operation);
          expect(validate(patched(inputs, others)), operation.path).toBe(false);
        }
        expect(JSON.stringify(inputs)).toBe(text);
      }),
    );
  });

  it('answers only with a patch that makes the inputs valid, whatever they are', () => {
    const noise = fc.dictionary(fc.constantFrom('a', 'b', 'c/d', 'constructor'), fc.jsonValue(), { maxKeys: 2 });
    fc.assert(
      fc.property(curable, noise, ([schema, inputs], other) => {
        const validate = ajv.compile(schema);
        const value = deepFreeze({ ...inputs, ...other });
        const patch = cureInputs(validate, value);
        if (patch === undefined) return;
        expect(validate(patched(value, patch))).toBe(true);
        expect(validate(value)).toBe(patch.length === 0);
      }),
    );
  });

  it('has nothing to change in inputs that fit', () => {
    fc.assert(
      fc.property(samples, ({ schema, fitting }) => {
        expect(cureInputs(ajv.compile(schema), fitting as object)).toEqual([]); // objects() makes objects
      }),
    );
  });
});
