import { parseDuration } from '../../../shared/durations.ts';
import { expectMatch, expectSame, expectThat } from '../../wire/expect.ts';
import { at, tell } from '../../wire/heard.ts';
import { calleeFamily } from '../family.ts';
import { HANG } from '../script.ts';

const check = calleeFamily('acceptance');
const UNKNOWN = { payload: { capability: 'conformance.unknown' } };

export const acceptanceChecks = [
  check('one-answer', ['HCP-107'], 'A submit is accepted once', async (bench) => {
    const session = await bench.start([HANG]);
    await session.state('RUNNING');
    await bench.quiet();
    const answers = bench.arrived.filter(({ type, sessionId }) => type === 'task_accepted' && sessionId === session.id);
    expectSame(new Set(answers.map(({ messageId }) => messageId)).size, 1, 'The number of answers');
  }),
  check('in-reply-to', ['D-03'], 'task_accepted says what it answers', async (bench) => {
    const { accepted, submission } = await bench.start();
    expectSame(at(accepted, '/payload/in_reply_to'), submission.messageId, 'in_reply_to');
  }),
  check('token', ['HCP-307'], 'task_accepted brings a session token', async (bench) => {
    const { accepted } = await bench.start();
    expectMatch(at(accepted, '/payload/session_token'), /./, 'session_token');
  }),
  check('token-of-its-own', ['HCP-307'], 'Each session has a token of its own', async (bench) => {
    const [one, other] = [await bench.start(), await bench.start()];
    expectThat(one.token !== other.token, 'Two sessions have the same token');
  }),
  check('risk', ['HCP-304'], 'task_accepted tells the assessed risk', async (bench) => {
    const { accepted } = await bench.start();
    expectMatch(at(accepted, '/payload/risk_level'), /^R[1-5]$/, 'risk_level');
  }),
  check('data-class', ['HCP-307'], 'task_accepted tells the data class: the one asked for', async (bench) => {
    const { accepted } = await bench.start(undefined, { payload: { constraints: { data_classification: 'T1' } } });
    expectSame(at(accepted, '/payload/data_classification'), 'T1', 'data_classification');
  }),
  check('default-data-class', ['D-28'], 'A task that names no data class is given one', async (bench) => {
    const { accepted } = await bench.start();
    expectMatch(at(accepted, '/payload/data_classification'), /^T[1-4]$/, 'data_classification');
  }),
  check('envelope', ['HCP-309'], 'task_accepted tells the safety envelope', async (bench) => {
    const { accepted } = await bench.start();
    expectSame(typeof at(accepted, '/payload/safety_envelope'), 'object', 'The type of safety_envelope');
  }),
  check(
    'limits',
    ['HCP-120', 'HCP-123'],
    'task_accepted tells the longest run and the longest cleanup',
    async (bench) => {
      const { accepted } = await bench.start();
      for (const name of ['max_duration', 'abort_timeout']) {
        const text = at(accepted, `/payload/constraints/${name}`);
        expectThat(parseDuration(String(text)) !== undefined, `constraints.${name} is ${text}, which is no duration`);
      }
    },
  ),
  check('duration-asked', ['HCP-120'], 'A shorter run that is asked for is granted', async (bench) => {
    const { accepted } = await bench.start(undefined, { payload: { constraints: { max_duration: 'PT90S' } } });
    const granted = parseDuration(String(at(accepted, '/payload/constraints/max_duration')));
    expectSame(granted, 90_000, 'max_duration in milliseconds');
  }),
  check('duration-bounded', ['V-10'], 'A run of years is cut down to what the callee allows', async (bench) => {
    const asked = 'P50000D';
    const { accepted } = await bench.start(undefined, { payload: { constraints: { max_duration: asked } } });
    const granted = parseDuration(String(at(accepted, '/payload/constraints/max_duration')));
    expectThat(granted !== undefined && granted < Number(parseDuration(asked)), 'max_duration was not cut down');
  }),
  check('hints', ['HCP-005'], 'Confidence, priority and context are taken', async (bench) => {
    const constraints = { confidence_threshold: 0.9, priority: 'urgent', data_classification: 'T2' };
    const context = { purpose: 'A check', references: ['urn:one'], notes: 'None' };
    await bench.start(undefined, { payload: { constraints, context } });
  }),
  check(
    'rejected-once',
    ['HCP-107'],
    'A rejected task is answered once, and nothing else is said of it',
    async (bench) => {
      await bench.rejected(await bench.submit([], UNKNOWN));
      await bench.quiet();
    },
  ),
  check('rejection-in-reply-to', ['D-03'], 'task_rejected says what it answers', async (bench) => {
    const submission = await bench.submit([], UNKNOWN);
    const rejected = await bench.rejected(submission);
    expectSame(at(rejected, '/payload/in_reply_to'), submission.messageId, 'in_reply_to');
  }),
  check('rejection-message', ['HCP-107'], 'task_rejected says why in words', async (bench) => {
    const rejected = await bench.rejected(await bench.submit([], UNKNOWN));
    expectMatch(at(rejected, '/payload/reason_message'), /\w/, 'reason_message');
  }),
  check('suggestion', ['HCP-314', 'V-43'], 'A rejection for bad input suggests what to change', async (bench) => {
    const rejected = await bench.rejected(await bench.submit([], { payload: { inputs: {} } }), 'invalid_input');
    expectMatch(at(rejected, '/payload/suggestion'), /\w/, 'suggestion');
  }),
  check('start', ['HCP-105', 'HCP-110'], 'A session starts with session_created and PENDING→RUNNING', async (bench) => {
    const session = await bench.start([HANG]);
    await session.next();
    await session.next();
    const start = ['task_accepted', 'E1 session_created', 'E2 PENDING→RUNNING safety_check_passed'];
    expectSame(session.story, start, 'The start');
    expectSame(bench.arrived.map(tell), start, 'The order of arrival');
  }),
];
