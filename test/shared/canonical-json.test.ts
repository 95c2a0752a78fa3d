import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../shared/canonical-json.ts';
import { mistake } from '../support/mistakes.ts';

describe('the canonical text of a JSON value', () => {
  it('sorts the keys at every level, and leaves arrays as they are', () => {
    const value = { b: [{ z: 1, y: null }, 'x'], a: { d: true, c: -0.5 } };
    expect(canonicalJson(value)).toBe('{"a":{"c":-0.5,"d":true},"b":[{"y":null,"z":1},"x"]}');
  });

  it('sorts by code unit, also keys that look like numbers and those of prototypes', () => {
    const value = JSON.parse('{"é":1,"9":2,"10":3,"a":4,"B":5,"__proto__":6,"":7}');
    expect(canonicalJson(value)).toBe('{"":7,"10":3,"9":2,"B":5,"__proto__":6,"a":4,"é":1}');
  });

  it('leaves out what JSON leaves out, and escapes as JSON does', () => {
    expect(canonicalJson({ 'a"\n': 'ü"\u2028', gone: undefined })).toBe(JSON.stringify({ 'a"\n': 'ü"\u2028' }));
    expect([canonicalJson([]), canonicalJson({}), canonicalJson('x'), canonicalJson(null)]).toEqual([
      '[]',
      '{}',
      '"x"',
      'null',
    ]);
  });

  it('refuses what would share its text with another value', () => {
    const hole = new Array<unknown>(1);
    for (const value of [undefined, Number.NaN, Infinity, 1n, () => {}, Symbol('s'), new Date(0), new Map(), hole]) {
      expect(mistake(() => canonicalJson({ value: [value] }))).toContain('plain JSON');
    }
  });
});
