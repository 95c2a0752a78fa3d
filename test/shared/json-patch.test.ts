import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyPatch, isSafePointer, type PatchOperation, pointer, valueAt } from '../../shared/json-patch.ts';
import { deepFreeze } from '../../shared/messages/json-value.ts';

const task = deepFreeze({ inputs: { heat: 120, steps: ['a', 'b'], 'a/b~c': null, deep: { list: [{ on: true }] } } });

describe('applyPatch', () => {
  const applied: [string, readonly PatchOperation[], unknown, unknown][] = [
    ['replaces a value', [{ op: 'replace', path: '/a', value: 2 }], { a: 1, b: 1 }, { a: 2, b: 1 }],
    ['adds a property', [{ op: 'add', path: '/b', value: [] }], { a: 1 }, { a: 1, b: [] }],
    ['replaces by adding', [{ op: 'add', path: '/a', value: 2 }], { a: 1 }, { a: 2 }],
    ['removes a property', [{ op: 'remove', path: '/a' }], { a: 1, b: 2 }, { b: 2 }],
    ['inserts an item', [{ op: 'add', path: '/1', value: 'x' }], ['a', 'b'], ['a', 'x', 'b']],
    ['appends an item', [{ op: 'add', path: '/-', value: 'x' }], ['a'], ['a', 'x']],
    ['appends an item by its index', [{ op: 'add', path: '/1', value: 'x' }], ['a'], ['a', 'x']],
    ['replaces an item', [{ op: 'replace', path: '/0', value: 'x' }], ['a', 'b'], ['x', 'b']],
    ['removes an item', [{ op: 'remove', path: '/0' }], ['a', 'b'], ['b']],
    ['goes down to any depth', [{ op: 'remove', path: '/a/0/b' }], { a: [{ b: 1, c: 2 }] }, { a: [{ c: 2 }] }],
    ['replaces the whole value', [{ op: 'replace', path: '', value: 2 }], { a: 1 }, 2],
    ['reads escaped steps', [{ op: 'replace', path: '/a~1b~0c', value: 1 }], { 'a/b~c': 0 }, { 'a/b~c': 1 }],
    ['reads an empty step', [{ op: 'replace', path: '/', value: 1 }], { '': 0 }, { '': 1 }],
    [
      'works on what the operation before has left',
      [
        { op: 'add', path: '/a', value: {} },
        { op: 'add', path: '/a/b', value: 1 },
      ],
      {},
      { a: { b: 1 } },
    ],
  ];
  it.each(applied)('%s', (_, operations, value, expected) => {
    expect(applyPatch(deepFreeze(value), operations)).toEqual(expected);
  });

  it('leaves the value it was given alone', () => {
    const operations: PatchOperation[] = [
      { op: 'add', path: '/inputs/steps/0', value: 'first' },
      { op: 'replace', path: '/inputs/deep/list/0/on', value: false },
      { op: 'remove', path: '/inputs/a~1b~0c' },
    ];
    // The value is frozen: a write to it would throw.
    expect(applyPatch(task, operations)).toEqual({
      inputs: { heat: 120, steps: ['first', 'a', 'b'], deep: { list: [{ on: false }] } },
    });
    expect(task.inputs.steps).toEqual(['a', 'b']);
  });

  const refused: [string, PatchOperation][] = [
    ['a replacement of nothing', { op: 'replace', path: '/inputs/none', value: 1 }],
    ['a removal of nothing', { op: 'remove', path: '/inputs/none' }],
    ['an addition below nothing', { op: 'add', path: '/inputs/none/x', value: 1 }],
    ['an addition below a number', { op: 'add', path: '/inputs/heat/x', value: 1 }],
    ['an index beyond the end', { op: 'add', path: '/inputs/steps/3', value: 1 }],
    ['an index that is none', { op: 'replace', path: '/inputs/steps/length', value: 0 }],
    ['an index with a leading zero', { op: 'remove', path: '/inputs/steps/00' }],
    ['the place behind the end, where nothing is', { op: 'remove', path: '/inputs/steps/-' }],
    ['an inherited property', { op: 'replace', path: '/inputs/toString', value: 1 }],
    ['a path that does not start with a slash', { op: 'remove', path: 'inputs' }],
    ['a path with a broken escape', { op: 'remove', path: '/inputs/a~2' }],
    ['the prototype', { op: 'add', path: '/__proto__/polluted', value: 1 }],
    ['a new prototype', { op: 'add', path: '/inputs/__proto__', value: {} }],
    ['the constructor', { op: 'replace', path: '/inputs/constructor', value: 1 }],
    ['the prototype of a constructor', { op: 'add', path: '/inputs/prototype', value: 1 }],
  ];
  it.each(refused)('refuses %s, naming the path', (_, operation) => {
    const named = expect.objectContaining({ message: expect.stringContaining(operation.path) });
    expect(() => applyPatch(task, [operation])).toThrow(TypeError);
    expect(() => applyPatch(task, [operation])).toThrow(named);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  it('refuses to remove the whole value, and an operation that is not known', () => {
    expect(() => applyPatch(task, [{ op: 'remove', path: '' }])).toThrow(TypeError);
    const move = { op: 'move', from: '/inputs/heat', path: '/inputs/x' } as unknown as PatchOperation; // from outside
    expect(() => applyPatch(task, [move])).toThrow(/move at \/inputs\/x/);
  });
});

describe('pointer', () => {
  it('points to what lies at its steps, whatever the keys are', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { maxLength: 6 }), fc.jsonValue(), (steps, leaf) => {
        fc.pre(!steps.some((step) => ['__proto__', 'constructor', 'prototype'].includes(step)));
        const value = steps.reduceRight<unknown>((child, step) => ({ [step]: child }), leaf);
        const path = pointer(steps);
        expect(isSafePointer(path)).toBe(true);
        expect(valueAt(value, path)).toBe(leaf);
        expect(valueAt(applyPatch(value, [{ op: 'replace', path, value: 'new' }]), path)).toBe('new');
      }),
    );
  });

  it('escapes what has a meaning in a pointer', () => {
    expect(pointer(['a/b', '~', 0, ''])).toBe('/a~1b/~0/0/');
    expect(pointer([])).toBe('');
  });

  it('finds nothing where nothing is', () => {
    for (const path of ['/none', '/inputs/steps/2', '/inputs/steps/length', '/inputs/toString', '/inputs/heat/x/y']) {
      expect(valueAt(task, path), path).toBeUndefined();
    }
  });
});
