import { describe, expect, it } from 'vitest';
import { applyCure, type PatchOperation, type Task } from '../../caller/index.ts';
import { CallerRoom, DO_IT } from '../support/caller-room.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const TASK: Task = {
  capability: 'lab.heat',
  intent: 'Heat it',
  inputs: { temperature: 900, samples: ['a', 'b'], 'a/b': { '~': 1 } },
  constraints: { max_duration: 'PT9H' },
};

const GOOD: readonly PatchOperation[] = [
  { op: 'replace', path: '/inputs/temperature', value: 300 },
  { op: 'remove', path: '/constraints/max_duration' },
];

/** Nothing of these is proposed to a program, and none is applied. */
const BAD: readonly (readonly [what: string, operation: unknown])[] = [
  ['the capability', { op: 'replace', path: '/capability', value: 'lab.explode' }],
  ['the caller', { op: 'add', path: '/caller_id', value: 'somebody-else' }],
  ['everything', { op: 'replace', path: '', value: {} }],
  ['a prototype', { op: 'add', path: '/inputs/__proto__/polluted', value: true }],
  ['a prototype by its constructor', { op: 'add', path: '/inputs/constructor/prototype/polluted', value: true }],
  ['no path', { op: 'remove' }],
  ['a path that is none', { op: 'remove', path: 'inputs' }],
  ['an escape that is none', { op: 'remove', path: '/inputs/~2' }],
  ['an operation we do not know', { op: 'move', from: '/intent', path: '/inputs/temperature' }],
  ['a value that is missing', { op: 'add', path: '/inputs/more' }],
  ['no object', 'remove /inputs'],
];

describe('applying a cure', () => {
  it('makes another task and leaves the given one as it is', () => {
    const before = structuredClone(TASK);
    const value = { deep: [1] };
    const cured = applyCure(TASK, [
      ...GOOD,
      { op: 'add', path: '/inputs/samples/1', value: 'between' },
      { op: 'add', path: '/inputs/samples/-', value: 'last' },
      { op: 'remove', path: '/inputs/samples/0' },
      { op: 'replace', path: '/inputs/a~1b/~0', value: 2 },
      { op: 'add', path: '/inputs/more', value },
    ]);
    expect(cured).toEqual({
      ...TASK,
      inputs: { temperature: 300, samples: ['between', 'b', 'last'], 'a/b': { '~': 2 }, more: { deep: [1] } },
      constraints: {},
    });
    value.deep.push(2);
    expect([TASK, cured.inputs.more]).toEqual([before, { deep: [1] }]);
  });

  it.each([
    { op: 'replace', path: '/inputs/pressure', value: 1 },
    { op: 'remove', path: '/inputs/samples/2' },
    { op: 'add', path: '/inputs/samples/9', value: 'far' },
    { op: 'add', path: '/expected_output/format', value: 'csv' },
    { op: 'replace', path: '/intent/length', value: 1 },
    { op: 'remove', path: '/inputs/toString' },
  ] as const)('refuses $op $path, which does not exist', (operation) => {
    expect(() => applyCure(TASK, [operation])).toThrow(TypeError);
  });

  it.each(BAD)('refuses to touch %s', (_, operation) => {
    expect(() => applyCure(TASK, [operation as PatchOperation])).toThrow(TypeError);
    expect({}).not.toHaveProperty('polluted');
  });
});

describeOnStacks('a rejection that proposes a cure', (stack) => {
  verifies(['cure/1', 'P9'], 'hands it to the program, which alone applies it', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = caller.submit(TASK, { calleeId: room.calleeId });
    await room.callee.reject(undefined, { extensions: { 'cure/1': { patch: GOOD } } });
    const outcome = await (await submitted).result();
    if (outcome.status !== 'rejected' || outcome.cure === undefined) throw new Error('There is no cure');
    expect(outcome.cure).toEqual(GOOD);
    expect(room.callee.unheard).toBe(0);
    const again = caller.submit(applyCure(TASK, outcome.cure), { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    expect(submit.payload).toMatchObject({ capability: 'lab.heat', inputs: { temperature: 300 }, constraints: {} });
    await room.callee.accept(submit);
    expect((await again).sessionId).toBeDefined();
  });

  verifies('cure/1', 'one that is not well-formed through and through is none', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const patches = [...BAD.map(([, operation]) => [...GOOD, operation]), [], 'remove it', Array(101).fill(GOOD[0])];
    for (const extensions of [{}, { 'cure/1': null }, ...patches.map((patch) => ({ 'cure/1': { patch } }))]) {
      const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
      await room.callee.reject(undefined, { extensions });
      const outcome = await (await submitted).result();
      expect([outcome.status, 'cure' in outcome && outcome.cure]).toEqual(['rejected', undefined]);
    }
  });
});
