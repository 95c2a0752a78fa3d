import { isUuidV4 } from '../../../shared/ids.ts';
import { expectMatch, expectSame, expectThat } from '../../wire/expect.ts';
import { at, type Heard, tell } from '../../wire/heard.ts';
import type { CalleeBench } from '../bench.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, fail, progress } from '../script.ts';

const check = calleeFamily('envelope');

/** At least one of every message a callee sends. */
async function everything(bench: CalleeBench): Promise<readonly Heard[]> {
  await bench.run([progress(), checkpoint(), COMPLETE]);
  await bench.run([fail()]);
  await bench.rejected(await bench.submit([], { payload: { capability: 'conformance.unknown' } }));
  return bench.arrived;
}

/** Whether this holds for every message. */
async function expectOfAll(
  bench: CalleeBench,
  what: string,
  values: (heard: Heard) => readonly [actual: unknown, expected: unknown],
): Promise<void> {
  for (const heard of await everything(bench)) {
    const [actual, expected] = values(heard);
    expectSame(actual, expected, `${what} of ${tell(heard)}`);
  }
}

export const envelopeChecks = [
  check('fields', ['HCP-001'], 'Every message has the six fields of the envelope', async (bench) => {
    const fields = ['hcp_version', 'message_id', 'timestamp', 'session_id', 'type', 'payload'];
    for (const heard of await everything(bench)) {
      const missing = fields.filter((field) => at(heard, `/${field}`) === undefined);
      expectSame(missing, [], `What is missing in ${tell(heard)}`);
    }
  }),
  check('version', ['HCP-001'], 'Every message says that it is HCP 1.0', (bench) =>
    expectOfAll(bench, 'hcp_version', (heard) => [at(heard, '/hcp_version'), '1.0']),
  ),
  check('message-id', ['HCP-001', 'HCP-112'], 'Every message has a UUID v4 of its own', async (bench) => {
    const ids = (await everything(bench)).map((heard) => at(heard, '/message_id'));
    expectThat(ids.every(isUuidV4), 'A message_id is no UUID v4');
    expectSame(new Set(ids).size, ids.length, 'The number of different message ids');
  }),
  check('timestamp', ['HCP-001'], 'Every timestamp is UTC with milliseconds', async (bench) => {
    for (const heard of await everything(bench)) {
      const timestamp = at(heard, '/timestamp');
      expectMatch(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, `The timestamp of ${tell(heard)}`);
    }
  }),
  check('time-order', ['HCP-113'], 'The timestamps of a session do not go back', async (bench) => {
    const { accepted, heard } = await bench.run([progress(), progress(), COMPLETE]);
    const times = [accepted, ...heard].map((message) => Date.parse(String(at(message, '/timestamp'))));
    expectSame(
      times,
      times.toSorted((a, b) => a - b),
      'The order of the timestamps',
    );
  }),
  check(
    'session-id',
    ['HCP-106'],
    'The session id is a UUID v4 and the same in every message of the session',
    async (bench) => {
      const { id, heard } = await bench.run([progress(), COMPLETE]);
      expectThat(isUuidV4(id), 'The session_id is no UUID v4');
      expectSame(new Set(heard.map(({ sessionId }) => sessionId)), new Set([id]), 'The session_id');
    },
  ),
  check('no-session', ['D-01'], 'A rejection belongs to no session', async (bench) => {
    const submission = await bench.submit([], { payload: { capability: 'conformance.unknown' } });
    expectSame(at(await bench.rejected(submission), '/session_id'), null, 'The session_id of task_rejected');
  }),
  check('content-type', ['HCP-002'], 'Every message is application/json', (bench) =>
    expectOfAll(bench, 'content_type', ({ delivery }) => [delivery.properties.contentType, 'application/json']),
  ),
  check('content-encoding', ['HCP-002'], 'Every message is utf-8', (bench) =>
    expectOfAll(bench, 'content_encoding', ({ delivery }) => [delivery.properties.contentEncoding, 'utf-8']),
  ),
  check('message-id-property', ['HCP-002'], 'The property message_id is that of the body', (bench) =>
    expectOfAll(bench, 'The property message_id', (heard) => [
      heard.delivery.properties.messageId,
      at(heard, '/message_id'),
    ]),
  ),
  check('timestamp-property', ['HCP-002'], 'The property timestamp is that of the body in seconds', (bench) =>
    expectOfAll(bench, 'The property timestamp', (heard) => [
      heard.delivery.properties.timestamp,
      Math.floor(Date.parse(String(at(heard, '/timestamp'))) / 1000),
    ]),
  ),
  check('correlation-id', ['HCP-002'], 'The property correlation_id is the session, or absent without one', (bench) =>
    expectOfAll(bench, 'correlation_id', ({ delivery, sessionId }) => [
      delivery.properties.correlationId,
      sessionId ?? undefined,
    ]),
  ),
  check('type-property', ['HCP-002'], 'The property type is that of the body', (bench) =>
    expectOfAll(bench, 'The property type', ({ delivery, type }) => [delivery.properties.type, type]),
  ),
  check('app-id', ['D-03'], 'Every message names its callee in app_id', (bench) =>
    expectOfAll(bench, 'app_id', ({ delivery }) => [delivery.properties.appId, bench.calleeId]),
  ),
  check('reply-header', ['D-03'], 'Answers say in a header what they answer', async (bench) => {
    const submissions = [
      await bench.submit(),
      await bench.submit([], { payload: { capability: 'conformance.unknown' } }),
    ];
    for (const submission of submissions) {
      const { delivery, type } = await bench.answer(submission);
      const header = delivery.properties.headers?.['x-hcp-in-reply-to'];
      expectSame(header, submission.messageId, `x-hcp-in-reply-to of ${type}`);
    }
  }),
];
