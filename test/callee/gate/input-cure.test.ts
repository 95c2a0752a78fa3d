import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { cureInputs } from '../../../callee/gate/input-cure.ts';
import { applyPatch, type PatchOperation } from '../../../shared/json-patch.ts';
import { deepFreeze } from '../../../shared/messages/json-value.ts';

function compile(schema: object): ValidateFunction {
  return new Ajv2020({ strict: false, ownProperties: true, validateFormats: false }).compile(schema);
}

const replace = (path: string, value: unknown): PatchOperation => ({ op: 'replace', path, value });
const add = (path: string, value: unknown): PatchOperation => ({ op: 'add', path, value });
const remove = (path: string): PatchOperation => ({ op: 'remove', path });

type Case = readonly [name: string, schema: object, inputs: object, patch: readonly PatchOperation[]];

function cures(cases: readonly Case[]): void {
  it.each(cases)('%s', (_, schema, inputs, patch) => {
    const validate = compile(schema);
    expect(cureInputs(validate, deepFreeze(inputs))).toEqual(patch);
    const { inputs: cured } = applyPatch({ inputs }, patch) as { inputs: object }; // the shape given
    expect(validate(cured)).toBe(true);
  });
}

/** A schema and inputs of one property, `n`. */
const n = (name: string, rules: object, wrong: unknown, right: unknown): Case => [
  name,
  { properties: { n: rules } },
  { n: wrong },
  [replace('/inputs/n', right)],
];

describe('a number that is not allowed', () => {
  cures([
    n('goes up to the minimum', { minimum: 20 }, 3, 20),
    n('goes down to the maximum', { minimum: 20, maximum: 80.5 }, 120, 80.5),
    n('stays the whole number below an open maximum', { type: 'integer', exclusiveMaximum: 10 }, 15, 9),
    n('stays the whole number above an open minimum', { type: 'integer', exclusiveMinimum: 0 }, -4, 1),
    n('is whole above a broken minimum', { type: 'integer', minimum: 2.5 }, 1, 3),
    n('is whole below a broken maximum', { type: 'integer', maximum: 7.5 }, 9, 7),
    n('is whole beside a broken open bound', { type: 'integer', exclusiveMinimum: 2.5 }, 1, 3),
    n('is whole where null is allowed too', { type: ['integer', 'null'], exclusiveMaximum: 10 }, 15, 9),
    n('comes close to an open maximum', { type: 'number', exclusiveMaximum: 100 }, 150, 99.9999),
    n('comes close to an open minimum', { type: 'number', exclusiveMinimum: 0 }, -3, 0.000001),
    n('comes close to a small open bound', { exclusiveMaximum: -0.02 }, 1, -0.02000001),
    n('takes the middle of narrow open bounds', { exclusiveMinimum: 1, exclusiveMaximum: 1.0000001 }, 5, 1.00000005),
    n('obeys the tighter of two bounds', { minimum: 5, exclusiveMinimum: 5, type: 'integer' }, 1, 6),
    n('goes to the nearest multiple', { multipleOf: 5 }, 81.3, 80),
    n('goes to the nearest multiple inside the bounds', { multipleOf: 5, maximum: 99 }, 98, 95),
    n('goes to a multiple when it is out of bounds', { multipleOf: 5, minimum: 12, maximum: 99 }, 3, 15),
    n('goes to a multiple beside an open bound', { multipleOf: 5, exclusiveMaximum: 100 }, 130, 95),
    n('goes to a multiple that is a fraction', { multipleOf: 0.25, maximum: 2 }, 1.3, 1.25),
    n('goes to a multiple without a trace of binary fractions', { multipleOf: 0.01 }, 0.1234, 0.12),
    n('becomes zero, not minus zero', { multipleOf: 10 }, -2, 0),
    n('obeys rules spread over the schema', { allOf: [{ minimum: 5 }, { multipleOf: 4 }] }, 3, 8),
    n('is whole by a rule elsewhere', { allOf: [{ type: 'integer' }, { exclusiveMaximum: 10 }] }, 15, 9),
    n('is moved only as far as all rules want', { allOf: [{ maximum: 50 }, { maximum: 40 }] }, 90, 40),
    [
      'is cured behind a reference, in a list, below an escaped key',
      {
        $defs: { heat: { type: 'integer', exclusiveMaximum: 100 } },
        properties: { 'a/b ~%': { items: { $ref: '#/$defs/heat' } } },
      },
      { 'a/b ~%': [40, 200, 99, 100] },
      [replace('/inputs/a~1b ~0%/1', 99), replace('/inputs/a~1b ~0%/3', 99)],
    ],
    [
      'is cured behind a reference that leads back to itself',
      { properties: { n: { maximum: 5, type: 'integer' }, child: { $ref: '#' } } },
      { n: 1, child: { child: { n: 7 } } },
      [replace('/inputs/child/child/n', 5)],
    ],
    [
      'goes to the bound that refused it, not to one of the same name elsewhere',
      {
        $defs: { node: { properties: { n: { maximum: 9 }, next: { $ref: '#/$defs/node' } } } },
        properties: { n: { maximum: 5 }, next: { $ref: '#/$defs/node' } },
      },
      { n: 5, next: { n: 12 } },
      [replace('/inputs/next/n', 9)],
    ],
    [
      'is cured where the schema has names of its own',
      { $defs: { heat: { $id: 'urn:test:heat', maximum: 100 } }, properties: { n: { $ref: 'urn:test:heat' } } },
      { n: 101 },
      [replace('/inputs/n', 100)],
    ],
  ]);
});

describe('a text', () => {
  cures([
    n('becomes the whole number it shows', { type: 'integer' }, '12', 12),
    n('becomes the number it shows', { type: 'number' }, '-0.5', -0.5),
    n('becomes a number where null is allowed too', { type: ['number', 'null'] }, '7', 7),
    n('becomes a number and goes to the bound, in one operation', { type: 'integer', maximum: 10 }, '12', 10),
  ]);
});

describe('a property', () => {
  const closed = { properties: { a: { type: 'integer', maximum: 9 } }, additionalProperties: false };
  cures([
    [
      'that is not foreseen is removed',
      closed,
      { a: 1, b: 2, 'c/d': 3 },
      [remove('/inputs/b'), remove('/inputs/c~1d')],
    ],
    [
      'that no part of the schema foresees is removed',
      { allOf: [{ properties: { a: {} } }], properties: { b: {} }, unevaluatedProperties: false },
      { a: 1, b: 2, c: 3 },
      [remove('/inputs/c')],
    ],
    [
      'that is missing gets its default, wherever it belongs',
      { properties: { list: { items: { properties: { unit: { default: null } }, required: ['unit'] } } } },
      { list: [{ unit: 'K' }, {}] },
      [add('/inputs/list/1/unit', null)],
    ],
    [
      'that is missing gets the default of the part that asks for it',
      {
        properties: { fast: {}, speed: { default: 1 } },
        if: { required: ['fast'] },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { properties: { speed: { default: 9 } }, required: ['speed'] },
      },
      { fast: true },
      [add('/inputs/speed', 9)],
    ],
    [
      'that is missing gets a default, cured where the default is wrong itself',
      { properties: { o: { properties: { heat: { maximum: 5 } }, default: { heat: 7, x: 1 } } }, required: ['o'] },
      {},
      [add('/inputs/o', { heat: 5, x: 1 })],
    ],
    n('that has one value only gets it', { const: 'v1' }, 'v2', 'v1'),
    n('that has one value in a list of one gets it', { enum: [{ a: [1] }] }, 3, { a: [1] }),
    [
      'that was cured inside is replaced as a whole, when that is asked for',
      { properties: { o: { allOf: [closed, { const: { a: 3 } }] } } },
      { o: { a: 20, b: 1 } },
      [replace('/inputs/o', { a: 3 })],
    ],
    [
      'is left out of the patch, when it was added for one part and removed for another',
      {
        properties: { mode: {} },
        allOf: [
          {
            if: { properties: { mode: { const: 'fast' } } },
            // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
            then: { properties: { speed: { default: 9 } }, required: ['speed'] },
          },
          { properties: { mode: { const: 'slow' } } },
        ],
        unevaluatedProperties: false,
      },
      { mode: 'fast' },
      [replace('/inputs/mode', 'slow')],
    ],
  ]);

  it('takes its default only from the part of the schema that failed', () => {
    // Behind this reference ajv says "#/required" of the node, whose place in the schema is another one.
    const node = { properties: { next: { $ref: '#/$defs/node' }, unit: { default: 'K' } }, required: ['unit'] };
    const schema = { $defs: { node }, properties: { next: { $ref: '#/$defs/node' }, unit: { default: 'C' } } };
    expect(cureInputs(compile(schema), { next: {} })).toBeUndefined();
  });
});

describe('inputs', () => {
  it('that are valid need no change', () => {
    expect(cureInputs(compile({ properties: { n: { maximum: 5 } } }), { n: 5 })).toEqual([]);
  });

  it('of many faults are cured together, with one operation for each place', () => {
    const heat = { type: 'integer', minimum: 0, maximum: 100 };
    const schema = {
      properties: { kind: { const: 'run' }, heat, unit: { default: 'K' }, steps: { type: 'array', items: heat } },
      required: ['kind', 'unit'],
      additionalProperties: false,
    };
    const inputs = { kind: 'walk', heat: '250', steps: [-5, 50], note: 'x' };
    const patch = cureInputs(compile(schema), deepFreeze(inputs));
    expect(new Set(patch)).toEqual(
      new Set([
        replace('/inputs/kind', 'run'),
        replace('/inputs/heat', 100),
        replace('/inputs/steps/0', 0),
        add('/inputs/unit', 'K'),
        remove('/inputs/note'),
      ]),
    );
  });

  const twenty = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`x${i}`, i]));
  it('are cured in at most twenty steps, and then validated once more', () => {
    const strict = compile({ additionalProperties: false });
    let runs = 0;
    const counted = new Proxy(strict, {
      apply: (target, self, [inputs]) => {
        runs++;
        return Reflect.apply(target, self, [inputs]);
      },
    });
    expect(cureInputs(counted, twenty)).toHaveLength(20);
    expect(cureInputs(counted, { ...twenty, more: 1 })).toBeUndefined();
    expect(runs).toBe(42);
  });

  const hopeless: [string, object, object][] = [
    ['a list too long', { properties: { n: { maxItems: 1 } } }, { n: [1, 2] }],
    ['a text too long', { properties: { n: { maxLength: 1 } } }, { n: 'ab' }],
    ['a choice of several values', { properties: { n: { enum: [1, 2] } } }, { n: 3 }],
    ['a fraction where a whole number is asked for', { properties: { n: { type: 'integer' } } }, { n: 1.5 }],
    ['a fraction in a text', { properties: { n: { type: 'integer' } } }, { n: '1.5' }],
    ['a text JSON would print otherwise', { properties: { n: { type: 'number' } } }, { n: '1.0' }],
    ['a text with a space', { properties: { n: { type: 'number' } } }, { n: ' 1' }],
    [
      'a text of more digits than a number holds',
      { properties: { n: { type: 'integer' } } },
      { n: '9007199254740993' },
    ],
    ['a text that is no number', { properties: { n: { type: 'number' } } }, { n: 'null' }],
    ['an infinite text', { properties: { n: { type: 'number' } } }, { n: 'Infinity' }],
    ['a number where a text is asked for', { properties: { n: { type: 'string' } } }, { n: 12 }],
    ['a text where a truth is asked for', { properties: { n: { type: 'boolean' } } }, { n: '1' }],
    ['a missing property without a default', { properties: { n: { type: 'integer' } }, required: ['n'] }, {}],
    ['a missing property nobody describes', { required: ['toString'] }, {}],
    ['a default that is wrong', { properties: { n: { default: 'x', type: 'integer' } }, required: ['n'] }, {}],
    ['alternatives', { anyOf: [{ required: ['a'], properties: { a: { default: 1 } } }, { required: ['b'] }] }, {}],
    ['bounds that leave nothing', { properties: { n: { minimum: 5, maximum: 4 } } }, { n: 1 }],
    ['multiples that miss the bounds', { properties: { n: { multipleOf: 10, minimum: 1, maximum: 9 } } }, { n: 50 }],
    ['two units', { properties: { n: { allOf: [{ multipleOf: 4 }, { multipleOf: 7 }] } } }, { n: 5 }],
    [
      'a contradiction',
      { required: ['n'], properties: { n: { const: 1 } }, allOf: [{ properties: { n: { const: 2 } } }] },
      { n: 3 },
    ],
    [
      'a property both asked for and forbidden',
      { allOf: [{ additionalProperties: false }, { required: ['n'], properties: { n: { default: 1 } } }] },
      {},
    ],
    ['a name that no patch may touch', { additionalProperties: false }, { constructor: 1 }],
    ['a number too large for its unit', { properties: { n: { multipleOf: 0.001 } } }, { n: 1e308 }],
  ];
  it.each(hopeless)('are left to a human: %s', (_, schema, inputs) => {
    const validate = compile(schema);
    expect(validate(inputs)).toBe(false);
    expect(cureInputs(validate, deepFreeze(inputs))).toBeUndefined();
  });
});
