import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SCHEMA_NAMES } from '../../cli/document.ts';
import { schemas } from '../../schemas/index.ts';
import { runHcp } from '../support/cli.ts';
import { scratchFolder } from '../support/cli-world.ts';
import { verifies } from '../support/verifies.ts';
import { TASK } from '../support/world.ts';

const [SUBMIT] = schemas.task_submit.examples;

/** What is said of a document given on stdin. */
async function judge(document: unknown, ...options: string[]) {
  const stdin = typeof document === 'string' ? document : JSON.stringify(document);
  const { code, out } = await runHcp(['validate', '-', '--json', ...options], { stdin });
  return { code, ...JSON.parse(out.join())[0] };
}

describe('hcp validate', () => {
  it('finds the schema of every example of every schema', async () => {
    const examples = SCHEMA_NAMES.flatMap((name) => {
      const { examples = [] }: { examples?: readonly object[] } = schemas[name];
      // An empty object could be anything.
      return examples.filter((example) => Object.keys(example).length > 0).map((example) => ({ name, example }));
    });
    expect(examples.length).toBeGreaterThanOrEqual(SCHEMA_NAMES.length);
    for (const { name, example } of examples) {
      const { valid, schema, fault } = await judge(example);
      // The envelope is the shape of them all, and its examples are of their own types.
      const isRight = schema === name || (name === 'envelope' && typeof schema === 'string');
      expect({ name, schema, valid, fault, isRight }).toEqual({ name, schema, valid: true, fault: undefined, isRight });
    }
  });

  verifies('HCP-005', 'names the first fault of a message: where, what was found, what to do', async () => {
    const { payload, ...envelope } = structuredClone(SUBMIT) as { payload: Record<string, unknown> };
    const wrong = await judge({ ...envelope, payload: { ...payload, intent: 7 } });
    expect(wrong).toMatchObject({
      code: 1,
      schema: 'task_submit',
      fault: { code: 'schema', pointer: '/payload/intent', found: 'number' },
    });
    expect(wrong.fault.advice).toBe('Change it: hcp schemas print task_submit tells what it must be');
    const { intent, ...rest } = payload;
    const missing = await judge({ ...envelope, payload: rest });
    expect(missing.fault).toMatchObject({ pointer: '/payload/intent', found: 'missing' });
    expect(missing.fault.advice).toMatch(/^Add it: /);
    expect((await judge({ ...SUBMIT, type: 'task_submitt' })).fault.code).toBe('unknown_type');
    expect((await judge({ ...SUBMIT, hcp_version: '2.0' })).fault.code).toBe('unsupported_version');
  });

  it('checks the data of an event, of an extension too', async () => {
    const event = (event_type: string, data: object) => ({
      ...{ hcp_version: '1.0', message_id: crypto.randomUUID(), session_id: crypto.randomUUID() },
      ...{ timestamp: '2025-01-15T08:30:00.000Z', type: 'event', payload: { event_type, sequence: 1, data } },
    });
    expect(await judge(event('progress', { stage: 'x', message: 'y' }))).toMatchObject({ valid: true });
    for (const [type, data, pointer] of [
      ['progress', { stage: 'x' }, '/payload/data/message'],
      ['x-status', { state: 'RUNNING', last_sequence: 1 }, '/payload/data/result_sent'],
    ] as const) {
      const { valid, fault } = await judge(event(type, data));
      expect({ valid, pointer: fault.pointer }).toEqual({ valid: false, pointer });
      expect(fault.advice).toContain(`hcp schemas print event:${type} `);
    }
  });

  it('knows a capability, and what no schema says of it', async () => {
    expect(await judge(TASK)).toMatchObject({ code: 0, schema: 'capability', valid: true });
    const { safety, ...unsafe } = TASK;
    expect(await judge(unsafe)).toMatchObject({ code: 1, schema: 'capability', fault: { pointer: '/safety' } });
    const odd = await judge({ ...TASK, input_schema: { type: 'objekt' } });
    expect(odd).toMatchObject({
      code: 1,
      fault: { code: 'unusable', message: expect.stringContaining('input_schema') },
    });
  });

  it('knows an envelope by its fields, and checks against another schema when told so', async () => {
    const envelope = { parameters: { temperature: { max: '80' } } };
    const pointer = '/parameters/temperature/max';
    expect(await judge(envelope)).toMatchObject({ code: 1, schema: 'safety_envelope', fault: { pointer } });
    expect(await judge({ stage: 'x', message: 'y' }, '--schema', 'event:log')).toMatchObject({
      fault: { pointer: '/level', found: 'missing' },
    });
    const { code, err } = await runHcp(['validate', '-', '--schema', 'event:lok'], { stdin: '{}' });
    expect({ code, err }).toEqual({
      code: 2,
      err: ['hcp: There is no schema event:lok; did you mean event:log? (hcp --help)'],
    });
  });

  it('says so when it cannot tell what something is, or when it is no JSON', async () => {
    for (const document of [{ colour: 'red' }, [], 'null', '"text"']) {
      expect(await judge(document)).toMatchObject({ code: 1, fault: { code: 'unrecognised' } });
    }
    expect(await judge('{"a":1,}')).toMatchObject({ code: 1, fault: { code: 'not_json', advice: 'Correct the JSON' } });
    expect(await judge('{"name":1,"name":2}')).toMatchObject({ fault: { code: 'duplicate_key', pointer: '/name' } });
  });

  it('takes several files, and tells of each', async () => {
    const folder = scratchFolder();
    const [good, bad] = [join(folder, 'good.json'), join(folder, 'bad.json')];
    writeFileSync(good, JSON.stringify(SUBMIT));
    writeFileSync(bad, '{"type":"abort","payload":{}}');
    const { code, out } = await runHcp(['validate', good, bad]);
    expect({ code, out }).toEqual({
      code: 1,
      out: [
        `${good}: valid task_submit`,
        `${bad}: /hcp_version is missing (abort)`,
        '  Add it: hcp schemas print abort tells what it must be',
      ],
    });
    expect((await runHcp(['validate', good, good])).code).toBe(0);
    expect((await runHcp(['validate', good, join(folder, 'none.json')])).code).toBe(3);
    expect((await runHcp(['validate'])).code).toBe(2);
  });

  it('never repeats a value: it may be a secret', async () => {
    const { out } = await runHcp(['validate', '-'], { stdin: '{"name":"hunter2","version":"hunter2","safety":{}}' });
    expect(out.join()).not.toContain('hunter2');
  });
});
