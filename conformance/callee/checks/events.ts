import { isDeepStrictEqual } from 'node:util';
import { expectMatch, expectSame, expectThat } from '../../wire/expect.ts';
import { at, isEvent, tell } from '../../wire/heard.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, progress } from '../script.ts';

const check = calleeFamily('events');

/** A step of the script whose event carries exactly what the step says. */
function carries(type: string, name: string, what: string, data: Readonly<Record<string, unknown>>) {
  return check(name, ['HCP-005'], `${type} carries ${what} as it was said`, async (bench) => {
    const session = await bench.start([{ [type]: data }, COMPLETE]);
    const event = await session.event(type);
    for (const [field, value] of Object.entries(data)) {
      expectSame(at(event, `/payload/data/${field}`), value, `${field} of ${type}`);
    }
  });
}

/** What breaks the event's own rules never gets on the wire. */
function withholds(name: string, what: string, step: Readonly<Record<string, object>>) {
  return check(name, ['V-88', 'HCP-005'], `${what} is not said, and takes no sequence`, async (bench) => {
    const session = await bench.run([progress('before'), step, COMPLETE]);
    const [type = '', data] = Object.entries(step)[0] ?? [];
    const said = session.heard.filter((heard) => isEvent(heard, type));
    const isSaid = said.some((heard) => isDeepStrictEqual(at(heard, '/payload/data'), data));
    expectThat(!isSaid, `It was said: ${said.map(tell).join(', ')}`);
    const sequences = session.heard.filter((heard) => isEvent(heard)).map((heard) => at(heard, '/payload/sequence'));
    expectSame(
      sequences,
      sequences.map((_, i) => i + 1),
      'The sequences',
    );
  });
}

const NESTED = { list: [1, 2.5, -3e10, null, true, 'ä€😀'], empty: {}, deep: { a: [{ b: [] }] } };

export const eventsChecks = [
  check('session-created', ['HCP-110'], 'session_created repeats token and risk of task_accepted', async (bench) => {
    const session = await bench.start();
    const created = await session.event('session_created');
    // Not shown: it is a secret (HCP-014).
    expectThat(at(created, '/payload/data/session_token') === session.token, 'session_token is another one');
    expectSame(at(created, '/payload/data/risk_level'), at(session.accepted, '/payload/risk_level'), 'risk_level');
    expectSame(at(created, '/payload/data/state'), 'PENDING', 'state');
  }),
  check('state-changed', ['HCP-110'], 'state_changed says from where, to where and why', async (bench) => {
    const session = await bench.start();
    const changed = await session.event('state_changed');
    const { from_state, to_state, reason } = at(changed, '/payload/data') as Record<string, unknown>; // by its schema
    expectSame([from_state, to_state], ['PENDING', 'RUNNING'], 'The transition');
    expectMatch(reason, /./, 'reason');
  }),
  carries('progress', 'progress', 'stage, percent and message', {
    stage: 'heating',
    percent: 12.5,
    message: 'At 320 °C',
  }),
  carries('progress', 'progress-bounds', '0 percent', { stage: 'start', percent: 0, message: '' }),
  check('progress-bare', ['HCP-005'], 'progress without a percentage has none', async (bench) => {
    const session = await bench.start([{ progress: { stage: 'a', message: 'b' } }, COMPLETE]);
    expectSame(at(await session.event('progress'), '/payload/data/percent'), undefined, 'percent');
  }),
  carries('intermediate_result', 'intermediate-result', 'any JSON', {
    result_type: 'table',
    data: NESTED,
    is_partial: true,
  }),
  carries('intermediate_result', 'intermediate-null', 'null', {
    result_type: 'nothing',
    data: null,
    is_partial: false,
  }),
  carries('log', 'log', 'level, message and details', { level: 'warn', message: 'Careful', details: NESTED }),
  check('log-details', ['HCP-005'], 'log without details has empty ones', async (bench) => {
    const session = await bench.start([{ log: { level: 'error', message: 'Oh' } }, COMPLETE]);
    expectSame(at(await session.event('log'), '/payload/data/details'), {}, 'details');
  }),
  carries('warning', 'warning', 'code, message and details', {
    code: 'low',
    message: 'Low on acid',
    details: { ml: 3 },
  }),
  carries('error', 'error', 'code, message and whether it can recover', {
    code: 'e1',
    message: 'Oh',
    recoverable: true,
  }),
  check('error-goes-on', ['HCP-110'], 'A task goes on behind an error event', async (bench) => {
    const session = await bench.run([
      { error: { code: 'e1', message: 'Oh', recoverable: false } },
      progress(),
      COMPLETE,
    ]);
    expectSame(session.result.type, 'task_completed', 'The result');
  }),
  check(
    'checkpoint',
    ['HCP-116'],
    'checkpoint_created says which, what and whether it can be resumed',
    async (bench) => {
      const session = await bench.start([checkpoint('After sample 1'), COMPLETE]);
      const created = await session.event('checkpoint_created');
      expectMatch(at(created, '/payload/data/checkpoint_id'), /./, 'checkpoint_id');
      expectSame(at(created, '/payload/data/description'), 'After sample 1', 'description');
      expectSame(at(created, '/payload/data/resumable'), true, 'resumable');
      expectThat(!Number.isNaN(Date.parse(String(at(created, '/payload/data/created_at')))), 'created_at is no time');
    },
  ),
  check('checkpoint-ids', ['HCP-116'], 'Each checkpoint of a session has an id of its own', async (bench) => {
    const { heard } = await bench.run([checkpoint(), checkpoint(), checkpoint(), COMPLETE]);
    const created = heard.filter((message) => isEvent(message, 'checkpoint_created'));
    const ids = new Set(created.map((message) => at(message, '/payload/data/checkpoint_id')));
    expectSame(ids.size, 3, 'The number of different checkpoint ids');
  }),
  check(
    'session-closed',
    ['HCP-110'],
    'session_closed comes once, with the reason of the last state_changed',
    async (bench) => {
      const { heard } = await bench.run([progress(), COMPLETE]);
      const closed = heard.filter((message) => isEvent(message, 'session_closed'));
      expectSame(closed.length, 1, 'The number of session_closed');
      const changed = heard.findLast((message) => isEvent(message, 'state_changed'));
      const reasons = [closed[0], changed].map((message) => message && at(message, '/payload/data/reason'));
      expectSame(reasons[0], reasons[1], 'The reason of session_closed');
    },
  ),
  withholds('percent', 'Progress of 150 percent', { progress: { stage: 'a', percent: 150, message: 'b' } }),
  withholds('level', 'A log of level debug', { log: { level: 'debug', message: 'b' } }),
  withholds('no-code', 'A warning without a code', { warning: { message: 'b' } }),
  check('large', ['HCP-012'], 'An event of 200 KiB arrives whole', async (bench) => {
    const text = 'x'.repeat(200 * 1024);
    const session = await bench.start([
      { intermediate_result: { result_type: 'text', data: text, is_partial: false } },
    ]);
    const event = await session.event('intermediate_result');
    expectThat(at(event, '/payload/data/data') === text, 'It came otherwise than it was said');
  }),
];
