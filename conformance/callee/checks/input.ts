import { randomUUID } from 'node:crypto';
import { expectSame } from '../../wire/expect.ts';
import { at } from '../../wire/heard.ts';
import { HOSTILE_BODIES } from '../../wire/hostile.ts';
import { type Changes, rawMessage } from '../../wire/raw.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE } from '../script.ts';

const check = calleeFamily('input');

/** A spoilt submit whose sender can be reached is answered; without an address nobody can be (D-27). */
const hostile = HOSTILE_BODIES.flatMap(({ name, whose, requirements, isReadable = false, spoil }) => [
  check(`${name}-answered`, requirements, `A submit whose ${whose} is rejected to its app_id`, async (bench) => {
    const submission = bench.draft();
    await bench.send({ ...submission, body: spoil(submission) });
    const answer = await bench.answer(submission);
    if (!isReadable || answer.type === 'task_rejected') {
      expectSame(at(answer, '/payload/reason_code'), 'invalid_input', 'The reason_code');
      expectSame(at(answer, '/payload/in_reply_to'), submission.messageId, 'in_reply_to');
    }
    await bench.stillServes();
  }),
  ...(isReadable
    ? []
    : [
        check(
          `${name}-unanswered`,
          requirements,
          `A message whose ${whose} and whose sender is unknown is put aside`,
          async (bench) => {
            const submission = bench.draft([COMPLETE], {
              payload: { caller_id: undefined },
              properties: { appId: undefined },
            });
            await bench.send({ ...submission, body: spoil(submission) });
            await bench.quiet();
          },
        ),
      ]),
]);

/** A submit with this change is rejected. */
function refuses(
  name: string,
  requirements: readonly string[],
  what: string,
  changes: Changes,
  reasonCode = 'invalid_input',
) {
  return check(name, requirements, `A submit ${what} is rejected: ${reasonCode}`, async (bench) => {
    const submission = bench.draft([COMPLETE], changes);
    await bench.send(submission);
    await bench.rejected(submission, reasonCode);
    await bench.stillServes();
  });
}

/** A submit with this change is as good as any other. */
function takes(name: string, requirements: readonly string[], what: string, changes: Changes) {
  return check(name, requirements, `A submit ${what} is accepted`, async (bench) => {
    const session = await bench.run([COMPLETE], changes);
    expectSame(session.result.type, 'task_completed', 'The result');
  });
}

/** A message with this change meets silence, and does no harm. */
function ignores(name: string, requirements: readonly string[], what: string, changes: Changes & { type?: string }) {
  return check(name, requirements, `${what} is put aside without a word`, async (bench) => {
    const { payload, type = 'task_submit', ...rest } = changes;
    const task = { capability: 'hcp.conformance', caller_id: bench.callerId, intent: 'Do it', inputs: { script: [] } };
    await bench.send(rawMessage({ type, senderId: bench.callerId, payload: { ...task, ...payload }, ...rest }));
    await bench.quiet();
  });
}

const anySession = randomUUID();

export const inputChecks = [
  ...hostile,
  refuses('content-type', ['V-33'], 'of content type text/plain', { properties: { contentType: 'text/plain' } }),
  refuses('content-encoding', ['V-33'], 'of content encoding gzip', { properties: { contentEncoding: 'gzip' } }),
  takes('no-content-type', ['V-34'], 'without a content type', { properties: { contentType: undefined } }),
  takes('no-content-encoding', ['V-34'], 'without a content encoding', { properties: { contentEncoding: undefined } }),
  takes('no-properties', ['V-34'], 'without any property', {
    properties: {
      ...{ contentType: undefined, contentEncoding: undefined, messageId: undefined },
      ...{ timestamp: undefined, type: undefined, appId: undefined },
    },
  }),
  takes('other-properties', ['HCP-002'], 'whose properties name another message id and type', {
    properties: { messageId: randomUUID(), type: 'abort' },
  }),
  refuses('version-2', ['V-35'], 'of version 2.0', { envelope: { hcp_version: '2.0' } }, 'unsupported_version'),
  check('version-2-reply', ['V-35'], 'A submit of version 2.0 is answered in 1.0', async (bench) => {
    const rejected = await bench.rejected(await bench.submit([COMPLETE], { envelope: { hcp_version: '2.0' } }));
    expectSame(at(rejected, '/hcp_version'), '1.0', 'hcp_version');
  }),
  takes('version-1-7', ['V-36'], 'of version 1.7 with unknown fields', {
    envelope: { hcp_version: '1.7', mood: 'good' },
    payload: { mood: { is: 'good' } },
  }),
  refuses('version-short', ['V-37'], 'of version "1"', { envelope: { hcp_version: '1' } }),
  refuses('version-number', ['V-37'], 'whose version is a number', { envelope: { hcp_version: 1 } }),
  refuses('version-missing', ['V-37'], 'without a version', { envelope: { hcp_version: undefined } }),
  takes('unknown-fields', ['HCP-006'], 'with unknown fields everywhere', {
    envelope: { 'x-note': [1] },
    payload: { note: 1, constraints: { note: 1 }, expected_output: { note: 1 }, context: { note: { deep: [] } } },
  }),
  takes('unicode', ['HCP-001'], 'in any script', { payload: { intent: 'Zähle 到三 🧪\u2028\u0000' } }),
  refuses('timestamp', ['HCP-005'], 'with a date in words', { envelope: { timestamp: 'yesterday' } }),
  refuses('timestamp-zone', ['HCP-005'], 'in another time zone', {
    envelope: { timestamp: '2025-01-15T08:30:00.000+02:00' },
  }),
  takes('timestamp-zero', ['HCP-005'], 'whose time ends with +00:00', {
    envelope: { timestamp: '2025-01-15T08:30:00.000+00:00' },
  }),
  refuses('payload-array', ['HCP-005'], 'whose payload is an array', { envelope: { payload: [] } }),
  refuses('payload-null', ['HCP-005'], 'whose payload is null', { envelope: { payload: null } }),
  check('no-message-id', ['V-39'], 'A submit without a message id in its body is rejected', async (bench) => {
    const submission = await bench.submit([COMPLETE], { envelope: { message_id: undefined } });
    await bench.rejected(submission, 'invalid_input');
  }),
  check('message-id-words', ['V-39'], 'A submit whose message id is no UUID is rejected', async (bench) => {
    const submission = await bench.submit([COMPLETE], { envelope: { message_id: 'msg-001' } });
    await bench.rejected(submission, 'invalid_input');
  }),
  check('message-id-v1', ['V-39'], 'A submit whose message id is a UUID v1 is rejected', async (bench) => {
    const submission = await bench.submit([COMPLETE], {
      envelope: { message_id: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' },
    });
    await bench.rejected(submission, 'invalid_input');
  }),
  refuses('caller-dot', ['V-41'], 'from a caller with a dot', { payload: { caller_id: 'a.b' } }),
  refuses('caller-hash', ['V-41'], 'from the caller #', { payload: { caller_id: '#' } }),
  refuses('no-caller', ['V-40'], 'that names no caller but in app_id', { payload: { caller_id: undefined } }),
  ignores('nobody', ['V-40'], 'A submit that names no caller at all', {
    payload: { caller_id: undefined },
    properties: { appId: undefined },
  }),
  ignores('caller-wild', ['V-41'], 'A submit from * without an app_id', {
    payload: { caller_id: '*' },
    properties: { appId: undefined },
  }),
  ignores('unknown-type', ['V-61', 'HCP-130'], 'A message of type pause', {
    type: 'pause',
    envelope: { session_id: anySession },
  }),
  ignores('event', ['V-61'], 'An event on the command queue', {
    type: 'event',
    payload: { event_type: 'progress', sequence: 1, data: { stage: 'a', message: 'b' } },
    envelope: { session_id: anySession },
  }),
  ignores('result', ['V-61'], 'A task_completed on the command queue', {
    type: 'task_completed',
    payload: { outputs: {} },
    envelope: { session_id: anySession },
  }),
  check('flood', ['HCP-007'], 'Fifty spoilt messages in a row keep nobody from being served', async (bench) => {
    const spoilt = Array.from({ length: 50 }, (_, i) => HOSTILE_BODIES[i % 10]);
    await Promise.all(
      spoilt.map(async (body) => {
        const draft = bench.draft([COMPLETE], { properties: { appId: undefined } });
        await bench.send({ ...draft, body: body?.spoil(draft) ?? draft.body });
      }),
    );
    await bench.quiet();
  }),
];
