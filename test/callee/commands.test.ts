import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import type { MessageProperties } from '../../shared/transport/transport.ts';
import { bytes, eventObject, S1, submitObject, wireProperties } from '../support/messages.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

const done = async () => ({ outputs: {} });

/** A submit for the world's callee, to be spoilt. */
function rawSubmit(world: World, payload: object = {}, envelope: object = {}): Record<string, unknown> {
  const task = { capability: 'test.task', caller_id: world.callerId, inputs: {}, ...payload };
  return submitObject(task, { message_id: randomUUID(), ...envelope });
}

const from = (world: World, more: Partial<MessageProperties> = {}) =>
  wireProperties({ appId: world.callerId, ...more });

/** The properties of a sender that does not say who it is. */
const { appId: _, ...anonymous } = wireProperties();

/** Sends what must be rejected and answers the payload of the rejection. */
async function rejected(world: World, body: object | string, properties: MessageProperties = from(world)) {
  await world.send(bytes(body), properties);
  const answer = await world.next();
  if (answer.type !== 'task_rejected') throw new Error(`Expected a rejection, heard ${tell(answer)}`);
  expect([answer.hcp_version, answer.session_id]).toEqual(['1.0', null]);
  expect(world.received.at(-1)?.route.routingKey).toBe(`${world.callerId}.none.task_rejected`);
  return answer.payload;
}

/** Sends what must be dead-lettered as it is, without a word to anybody. */
async function buried(world: World, body: Uint8Array, properties: MessageProperties): Promise<void> {
  await world.send(body, properties);
  const letter = await world.buried();
  expect(Buffer.from(letter.body).equals(body)).toBe(true);
  await world.echo();
}

/** The queue goes on: a task is taken and done. */
async function stillServes(world: World): Promise<void> {
  await world.submit();
  expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
}

describeOnStacks('bad and odd commands', (stack) => {
  verifies(['V-30', 'HCP-130', 'HCP-007'], 'an unreadable body of an unknown sender is dead-lettered', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    await buried(world, bytes('{"hcp_version": "1.0", '), { ...anonymous, type: 'task_submit' });
    await buried(world, Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), { ...anonymous, type: 'task_submit' });
    await stillServes(world);
  });

  verifies(['V-31', 'HCP-130'], 'an unreadable submit of a known sender is rejected by its properties', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    for (const body of ['{"hcp_version": ', '[]', '"task"', 'null']) {
      const messageId = randomUUID();
      const answer = await rejected(world, body, from(world, { type: 'task_submit', messageId }));
      expect(answer).toMatchObject({ reason_code: 'invalid_input', in_reply_to: messageId });
    }
    await stillServes(world);
  });

  verifies('V-33', 'another content type or encoding is refused, however good the JSON', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    for (const wrong of [{ contentType: 'text/plain' }, { contentEncoding: 'gzip' }]) {
      const properties = from(world, { type: 'task_submit', ...wrong });
      expect(await rejected(world, rawSubmit(world), properties)).toMatchObject({ reason_code: 'invalid_input' });
    }
    await world.echo();
  });

  verifies('V-34', 'a submit without a content type is done, with a warning in the log', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    await world.send(bytes(rawSubmit(world)), { appId: world.callerId, contentEncoding: 'utf-8' });
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    expect(world.logged(/"level":"warn".*content_type is missing/)).toHaveLength(1);
  });

  verifies('V-35', 'a submit of another major version is rejected in ours', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    const submit = rawSubmit(world, {}, { hcp_version: '2.0' });
    const expected = { reason_code: 'unsupported_version', in_reply_to: submit.message_id };
    expect(await rejected(world, submit)).toMatchObject(expected);
  });

  verifies('V-36', 'a newer minor version with fields nobody knows is done as usual', async () => {
    await using world = await World.create(stack());
    const { promise: task, resolve: tellTask } = Promise.withResolvers<object>();
    await world.serve(async (given) => {
      tellTask(given);
      return { outputs: {} };
    });
    const mood = { mood: { colour: 'blue' } };
    await world.send(bytes(rawSubmit(world, mood, { hcp_version: '1.7', ...mood })), from(world));
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    expect(await task).toMatchObject(mood);
  });

  verifies('V-37', 'a version that is none is invalid', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    for (const hcp_version of ['1', 1.0, '1.0.0', null]) {
      const answer = await rejected(world, rawSubmit(world, {}, { hcp_version }));
      expect(answer).toMatchObject({ reason_code: 'invalid_input' });
      expect(answer.reason_message).toContain('/hcp_version');
    }
  });

  verifies('V-38', 'an abort of another major version is dead-lettered and stops nothing', async () => {
    await using world = await World.create(stack());
    const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
    await world.serve(async () => {
      await finish;
      return { outputs: {} };
    });
    await world.submit();
    const { sessionId } = await world.started();
    const abort = submitObject({}, { hcp_version: '2.0', type: 'abort', session_id: sessionId, payload: {} });
    await buried(world, bytes(abort), from(world));
    tellFinish();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies('V-39', 'a submit without a message id worth the name is rejected', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    const uuidV1 = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
    for (const message_id of [undefined, 'msg-001', uuidV1, 7]) {
      const answer = await rejected(world, rawSubmit(world, {}, { message_id }));
      expect(answer).toMatchObject({ reason_code: 'invalid_input' });
      expect(answer.reason_message).toContain('/message_id');
      expect(answer).not.toHaveProperty('in_reply_to');
    }
    await buried(world, bytes(rawSubmit(world, { caller_id: undefined }, { message_id: 'msg-001' })), anonymous);
  });

  verifies('V-40', 'a submit that says nowhere whose it is is dead-lettered', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    await buried(world, bytes(rawSubmit(world, { caller_id: undefined })), anonymous);
    const answer = await rejected(world, rawSubmit(world, { caller_id: undefined }));
    expect(answer.reason_message).toContain('/payload/caller_id');
  });

  verifies('V-41', 'a caller id that could reach others is never used as an address', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    for (const caller_id of ['a.b', '#', '*', `${world.callerId}.x`, '']) {
      const answer = await rejected(world, rawSubmit(world, { caller_id }));
      expect(answer).toMatchObject({ reason_code: 'invalid_input' });
      await buried(world, bytes(rawSubmit(world, { caller_id })), anonymous);
    }
    await buried(world, bytes(rawSubmit(world, { caller_id: '#' })), { ...anonymous, appId: '#' });
  });

  const unfit: readonly [ids: string | string[], name: string, payload: object, field: string][] = [
    ['V-42', 'without an intent', { intent: undefined }, '/payload/intent'],
    ['V-42', 'with inputs in a list', { inputs: [] }, '/payload/inputs'],
    ['V-44', 'for a year', { constraints: { max_duration: 'P1Y' } }, '/payload/constraints/max_duration'],
    ['V-44', 'for no time', { constraints: { max_duration: 'PT0S' } }, '/payload/constraints/max_duration'],
    ['V-44', 'for "1h"', { constraints: { max_duration: '1h' } }, '/payload/constraints/max_duration'],
    ['V-45', 'with T9 data', { constraints: { data_classification: 'T9' } }, '/payload/constraints/data_class'],
    ['V-45', 'too sure of itself', { constraints: { confidence_threshold: 1.5 } }, '/payload/constraints/confidence'],
  ];
  for (const [ids, name, payload, field] of unfit) {
    verifies(ids, `a submit ${name} is rejected, the field is named`, async () => {
      await using world = await World.create(stack());
      await world.serve(done);
      const submit = rawSubmit(world, payload);
      const answer = await rejected(world, submit);
      expect(answer).toMatchObject({ reason_code: 'invalid_input', in_reply_to: submit.message_id });
      expect(answer.reason_message).toContain(field);
    });
  }

  verifies(['V-43', 'HCP-314'], 'inputs that break the schema are rejected with what to correct', async () => {
    await using world = await World.create(stack());
    const { promise: ran, resolve: tellRan } = Promise.withResolvers<unknown>();
    await world.serve(
      async ({ inputs }) => {
        tellRan(inputs.to);
        return { outputs: {} };
      },
      {},
      { input_schema: { type: 'object', required: ['to'], properties: { to: { type: 'integer', maximum: 9 } } } },
    );
    const answers = [
      await rejected(world, rawSubmit(world)),
      await rejected(world, rawSubmit(world, { inputs: { to: 99 } })),
    ];
    expect(answers.map(({ reason_code, suggestion }) => [reason_code, suggestion])).toEqual([
      ['invalid_input', 'Correct /payload/inputs and submit again'],
      ['invalid_input', 'Correct /payload/inputs/to and submit again'],
    ]);
    await world.submit({ inputs: { to: 3 } });
    expect(await ran).toBe(3); // the two before never ran
  });

  verifies('V-47', 'a submit that names its session is rejected', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    const answer = await rejected(world, rawSubmit(world, {}, { session_id: S1 }));
    expect(answer).toMatchObject({ reason_code: 'invalid_input' });
    expect(answer.reason_message).toContain('/session_id');
  });

  verifies('V-48', 'an unknown capability and an unknown version are told apart', async () => {
    await using world = await World.create(stack());
    const callee = await world.callee();
    for (const version of ['1.0.0', '1.4.2', '2.0.0']) {
      const declaration = { ...TASK, version };
      callee.capability(declaration, async () => ({ outputs: { version } }));
    }
    await callee.start();
    const reasons = [
      await rejected(world, rawSubmit(world, { capability: 'test.other' })),
      await rejected(world, rawSubmit(world, { capability_version: '^3.0.0' })),
      await rejected(world, rawSubmit(world, { capability_version: 'banana' })),
    ].map(({ reason_code, suggestion }) => [reason_code, suggestion]);
    expect(reasons).toEqual([
      ['capability_not_found', 'Offered are test.task, hcp.describe'],
      ['capability_version_unsupported', 'Offered are 1.0.0, 1.4.2, 2.0.0'],
      ['invalid_input', 'Use a range such as ^1.0.0'],
    ]);
    await world.submit({ capability_version: '1.x' });
    expect((await world.hear(4)).at(-1)).toMatchObject({ payload: { outputs: { version: '1.4.2' } } });
  });

  verifies(['V-60', 'HCP-012'], 'an oversized submit is rejected unread, or dead-lettered', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    const messageId = randomUUID();
    const huge = bytes(`{"x": "${'x'.repeat(1024 * 1024)}`); // no JSON: whoever parses it says so
    const answer = await rejected(world, huge.toString(), from(world, { type: 'task_submit', messageId }));
    expect(answer).toMatchObject({ reason_code: 'invalid_input', in_reply_to: messageId });
    expect(answer.reason_message).toMatch(/has \d+ bytes, allowed are 1048576/);
    await buried(world, huge, { ...anonymous, type: 'task_submit' });
    await stillServes(world);
  });

  verifies(['V-61', 'HCP-130'], 'what is no command is dead-lettered', async () => {
    await using world = await World.create(stack());
    await world.serve(done);
    const completed = { type: 'task_completed', session_id: S1, payload: { outputs: {} } };
    const bodies = [rawSubmit(world, {}, { type: 'pause' }), eventObject(), rawSubmit(world, {}, completed)];
    for (const body of bodies) await buried(world, bytes(body), from(world));
    await stillServes(world);
  });
});

describeOnStacks('schemas from outside', (stack) => {
  verifies(['V-46', 'HCP-311'], 'a schema that is none, points elsewhere or is too deep is rejected', async () => {
    await using world = await World.create(stack());
    let visits = 0;
    const server = createServer((_request, response) => {
      visits++;
      response.end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      await world.serve(done, { limits: { depth: 100 } });
      const { port } = server.address() as AddressInfo; // it listens on a port
      const schemas: [object, RegExp][] = [
        [{ type: 'nonsense' }, /cannot be compiled/],
        [{ $ref: `http://127.0.0.1:${port}/schema.json` }, /may only point into the schema itself/],
        [{ $ref: '#/$defs/missing' }, /cannot be compiled/],
        [nested(40), /deeper than 32 levels/],
      ];
      for (const [schema, why] of schemas) {
        const answer = await rejected(world, rawSubmit(world, { expected_output: { schema } }));
        expect(answer).toMatchObject({
          reason_code: 'invalid_input',
          suggestion: 'Correct /payload/expected_output/schema and submit again',
        });
        expect(answer.reason_message).toMatch(why);
      }
      expect(visits).toBe(0);
    } finally {
      server.close();
    }
  });

  verifies(['V-46', 'HCP-311'], 'a pattern that never ends stalls its own task alone', async () => {
    await using world = await World.create(stack());
    const { promise: patternRuns, resolve: tellPatternRuns } = Promise.withResolvers<void>();
    await world.serve(async ({ inputs }) => {
      if (inputs.hostile) {
        tellPatternRuns();
        return { outputs: { text: `${'a'.repeat(40)}!` } };
      }
      await patternRuns;
      return { outputs: {} };
    });
    await world.submit();
    const { sessionId: bystander } = await world.started();
    const schema = { properties: { text: { type: 'string', pattern: '^(a+)+$' } } };
    await world.submit({ inputs: { hostile: true }, expected_output: { schema } });
    const heard = (await world.hear(3 + 3 + 3)).map((message) => [message.session_id === bystander, tell(message)]);
    expect(heard.filter(([isBystander]) => isBystander).at(-1)?.[1]).toBe('E4 closed COMPLETED task_completed');
    const ends = heard.map(([, told]) => told).filter((told) => String(told).includes('closed'));
    expect(ends).toEqual(['E4 closed COMPLETED task_completed', 'E4 closed FAILED execution_error']);
  });
});

function nested(levels: number): object {
  return levels === 0 ? {} : { not: nested(levels - 1) };
}
