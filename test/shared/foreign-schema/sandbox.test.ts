import { afterAll, describe, expect, it } from 'vitest';
import { createSchemaSandbox } from '../../../shared/foreign-schema/sandbox.ts';
import { verifies } from '../../support/verifies.ts';

const sandbox = createSchemaSandbox({ deadlineMs: 400 });
afterAll(() => sandbox.close());

const refused = (why: string | RegExp) =>
  expect.objectContaining({ code: 'schema_refused', message: expect.stringMatching(why) });
const deep = (levels: number): object => (levels <= 1 ? {} : { not: deep(levels - 1) });

describe('schema sandbox', () => {
  verifies('HCP-311', 'says whether a value fits, and where it does not, without the value', async () => {
    const schema = { type: 'object', properties: { t: { type: 'number', maximum: 5 } }, required: ['t'] };
    expect(await sandbox.validate(schema, { t: 3 })).toEqual({ valid: true });
    expect(await sandbox.validate(schema, { t: 7 })).toEqual({ valid: false, pointer: '/t', message: 'must be <= 5' });
    expect(await sandbox.validate(schema, {})).toMatchObject({ valid: false, pointer: '/t' });
  });

  const outOfBounds: [string, unknown, string | RegExp][] = [
    ['a remote reference', { $ref: 'https://example.org/x.json' }, /\$ref may only point into the schema/],
    ['a relative reference', { items: { $ref: 'other.json' } }, /\/items\/\$ref/],
    ['$async, which makes every value valid', { $async: true, type: 'string' }, /\$async/],
    ['$id, which could shadow another schema', { properties: { a: { $id: 'urn:x' } } }, /\/properties\/a\/\$id/],
    ['$dynamicRef', { $dynamicRef: '#x' }, /\$dynamicRef/],
    ['another dialect', { $schema: 'http://json-schema.org/draft-04/schema#' }, /2020-12/],
    ['a schema that is none', { type: 'nonsense' }, /cannot be compiled/],
    ['a reference that leads nowhere', { $ref: '#/$defs/x' }, /cannot be compiled/],
    ['a text', 'string', /not an object/],
    ['more than 64 KiB', { description: 'x'.repeat(65_536) }, /bytes/],
    ['33 levels', deep(33), /deeper than 32/],
    ['its own __proto__', JSON.parse('{"__proto__":{}}'), /never allowed/],
  ];
  for (const [what, schema, why] of outOfBounds) {
    verifies(['HCP-311', 'V-46'], `refuses ${what}`, async () => {
      await expect(sandbox.check(schema)).rejects.toThrow(refused(why));
    });
  }

  it('accepts 32 levels, local references and properties named like keywords', async () => {
    await sandbox.check(deep(32));
    await sandbox.check({ $defs: { a: { type: 'string' } }, properties: { $id: { $ref: '#/$defs/a' }, $async: {} } });
    await sandbox.check({ const: { $ref: 'data, not a reference' } });
  });

  const heavy: [string, object, unknown][] = [
    ['a pattern that backtracks for ever', { type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(40)}!`],
    [
      'unique items over thousands of objects',
      { uniqueItems: true },
      Array.from({ length: 30_000 }, (_, i) => ({ a: { b: [i] } })),
    ],
  ];
  for (const [what, schema, value] of heavy) {
    verifies(['HCP-311', 'V-46'], `stops ${what} at the deadline while the process stays responsive`, async () => {
      let turns = 0;
      const ticking = setInterval(() => turns++, 1);
      await expect(sandbox.validate(schema, value)).rejects.toThrow(
        expect.objectContaining({ code: 'schema_overrun' }),
      );
      clearInterval(ticking);
      expect(turns).toBeGreaterThan(10);
      expect(await sandbox.validate({ type: 'number' }, 1)).toEqual({ valid: true });
    });
  }

  verifies('HCP-311', 'survives references that double at each level, or never end', async () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 28 }, (_, i) => [
        `d${i}`,
        { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
      ]),
    );
    const doubling = { $defs: { ...$defs, d28: { type: 'string' } }, $ref: '#/$defs/d0' };
    await expect(sandbox.validate(doubling, 1)).rejects.toThrow(expect.objectContaining({ code: 'schema_overrun' }));
    await expect(sandbox.validate({ $ref: '#' }, 1)).rejects.toThrow();
    expect(await sandbox.validate({}, 1)).toEqual({ valid: true });
  });

  it('stops a schema that fills the memory', async () => {
    await using small = createSchemaSandbox({ memoryMb: 16, deadlineMs: 20_000 });
    const value = Array.from({ length: 400_000 }, (_, i) => ({ i }));
    await expect(small.validate({ type: 'array' }, value)).rejects.toThrow(
      expect.objectContaining({ code: 'schema_overrun' }),
    );
    expect(await small.validate({ type: 'array' }, [])).toEqual({ valid: true });
  });

  it('keeps one schema from reaching another', async () => {
    await sandbox.check({ $defs: { secret: { const: 1 } } });
    await expect(sandbox.check({ $ref: '#/$defs/secret' })).rejects.toThrow(refused('cannot be compiled'));
  });

  it('answers many at once, each its own', async () => {
    const verdicts = await Promise.all(
      Array.from({ length: 50 }, (_, i) => sandbox.validate({ const: i }, i % 2 ? i : -1)),
    );
    expect(verdicts.map(({ valid }) => valid)).toEqual(Array.from({ length: 50 }, (_, i) => i % 2 === 1));
  });

  it('closes twice, and refuses work afterwards', async () => {
    const closing = createSchemaSandbox();
    await closing.check({});
    await closing.close();
    await closing.close();
    await expect(closing.check({})).rejects.toThrow(/closed/);
  });
});
