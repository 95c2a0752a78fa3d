import { SkipCheck } from '../../check.ts';
import { expectSame, expectThat } from '../../wire/expect.ts';
import { at } from '../../wire/heard.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE } from '../script.ts';

const check = calleeFamily('gate');

/** A submit that is refused with this code; the next one is handled. */
function refuses(
  name: string,
  requirements: readonly string[],
  what: string,
  payload: Readonly<Record<string, unknown>>,
  reasonCode = 'invalid_input',
) {
  return check(name, requirements, `A task ${what} is rejected: ${reasonCode}`, async (bench) => {
    await bench.rejected(await bench.submit([COMPLETE], { payload }), reasonCode);
    await bench.stillServes();
  });
}

/** A submit with this duration is refused. */
function refusesDuration(name: string, duration: string) {
  return refuses(name, ['V-44'], `that may run ${duration}`, { constraints: { max_duration: duration } });
}

const REMOTE = { $ref: 'http://127.0.0.1:9/schema.json' };
const DEEP = JSON.parse(`${'{"not":'.repeat(200)}{}${'}'.repeat(200)}`);
/** Takes for ever on a machine that tries every way to read it. */
const SLOW = { properties: { text: { pattern: '^(a+)+$' } } };

export const gateChecks = [
  refuses('no-intent', ['V-42'], 'without an intent', { intent: undefined }),
  refuses('empty-intent', ['V-42'], 'with an empty intent', { intent: '' }),
  refuses('inputs-array', ['V-42'], 'whose inputs are an array', { inputs: [] }),
  refuses('no-inputs', ['V-42'], 'without inputs', { inputs: undefined }),
  refuses('no-capability', ['V-42'], 'without a capability', { capability: undefined }),
  refuses('inputs-schema', ['V-43'], 'whose inputs break the schema', { inputs: { script: 'do it' } }),
  refuses('unknown-step', ['V-43'], 'with a step nobody knows', { inputs: { script: [{ explode: {} }] } }),
  refusesDuration('duration-year', 'P1Y'),
  refusesDuration('duration-zero', 'PT0S'),
  refusesDuration('duration-words', '1h'),
  refusesDuration('duration-negative', '-PT5S'),
  refuses('data-class', ['V-45'], 'of data class T9', { constraints: { data_classification: 'T9' } }),
  refuses('confidence', ['V-45'], 'with a confidence of 1.5', { constraints: { confidence_threshold: 1.5 } }),
  refuses('priority', ['V-45'], 'of priority "now"', { constraints: { priority: 'now' } }),
  refuses('constraints-array', ['V-45'], 'whose constraints are an array', { constraints: [] }),
  refuses('schema-invalid', ['V-46'], 'that expects an output by no schema', {
    expected_output: { schema: { type: 'nonsense' } },
  }),
  refuses('schema-remote', ['V-46', 'HCP-311'], 'whose output schema lies elsewhere', {
    expected_output: { schema: REMOTE },
  }),
  refuses('schema-deep', ['V-46', 'HCP-311'], 'whose output schema is nested 200 levels deep', {
    expected_output: { schema: DEEP },
  }),
  check(
    'schema-slow',
    ['V-46', 'HCP-311'],
    'An output schema that takes for ever to check stops nobody',
    async (bench) => {
      const outputs = { text: `${'a'.repeat(40)}!` };
      const slow = await bench.submit([{ complete: { outputs } }], { payload: { expected_output: { schema: SLOW } } });
      await bench.stillServes();
      const answer = await bench.answer(slow);
      if (answer.type === 'task_rejected') return;
      const { sessionId } = answer;
      const where = ({ sessionId: id, type }: typeof answer) => id === sessionId && type.startsWith('task_');
      const result = await bench.next({ what: 'the result', where });
      expectSame(result.type, 'task_failed', 'The result');
    },
  ),
  refuses(
    'capability-unknown',
    ['V-48'],
    'for a capability nobody offers',
    { capability: 'conformance.unknown' },
    'capability_not_found',
  ),
  refuses(
    'version-unsupported',
    ['V-48'],
    'for version 999',
    { capability_version: '>=999.0.0' },
    'capability_version_unsupported',
  ),
  refuses('version-words', ['V-48'], 'for a version that is no range', { capability_version: 'the latest, please' }),
  check('version-any', ['V-48'], 'A task for any version is accepted', async (bench) => {
    await bench.start(undefined, { payload: { capability_version: '>=0.0.0' } });
  }),
  refuses(
    'order-capability',
    ['HCP-301'],
    'for an unknown capability with bad inputs and constraints that fit nothing there',
    { capability: 'conformance.unknown', inputs: { script: 7 }, capability_version: '>=999.0.0' },
    'capability_not_found',
  ),
  refuses('order-structure', ['HCP-301'], 'without an intent for an unknown capability', {
    capability: 'conformance.unknown',
    intent: undefined,
  }),
  check('own-session', ['V-47', 'HCP-106'], 'A submit that brings its own session id is rejected', async (bench) => {
    const submission = bench.draft([COMPLETE], { envelope: { session_id: '3fa85f64-5717-4562-b3fc-2c963f66afa6' } });
    await bench.send(submission);
    await bench.rejected(submission, 'invalid_input');
  }),
  check('sensitive-data', ['HCP-307'], 'T4 data is refused as forbidden, or taken as T4', async (bench) => {
    const submission = await bench.submit([COMPLETE], { payload: { constraints: { data_classification: 'T4' } } });
    const answer = await bench.answer(submission);
    const isForbidden = at(answer, '/payload/reason_code') === 'forbidden';
    expectThat(
      isForbidden || at(answer, '/payload/data_classification') === 'T4',
      'T4 data was taken as something else',
    );
  }),
  check('stranger', ['HCP-302', 'V-49'], 'A caller it does not know is rejected: unauthorized', async (bench) => {
    const { strangerId } = bench.options;
    if (strangerId === undefined) throw new SkipCheck('It needs the id of a caller that is not served');
    const stranger = await bench.another(strangerId);
    await stranger.rejected(await stranger.submit(), 'unauthorized');
  }),
  check('stranger-first', ['HCP-301'], 'A stranger is told nothing about what there is', async (bench) => {
    const { strangerId } = bench.options;
    if (strangerId === undefined) throw new SkipCheck('It needs the id of a caller that is not served');
    const stranger = await bench.another(strangerId);
    const submission = await stranger.submit([], { payload: { capability: 'conformance.unknown', inputs: {} } });
    await stranger.rejected(submission, 'unauthorized');
  }),
  check(
    'own-envelope',
    ['V-63', 'HCP-309'],
    'A safety envelope or token sent by the caller counts for nothing',
    async (bench) => {
      const mine = { parameters: { mine: { max: 1, unit: 'K', hard_limit: true } } };
      const { accepted, token } = await bench.start(undefined, {
        payload: { safety_envelope: mine, session_token: 'mine', risk_level: 'R5' },
      });
      expectThat(token !== 'mine', 'The token of the caller was taken');
      expectThat(!JSON.stringify(at(accepted, '/payload/safety_envelope')).includes('mine'), 'Its envelope was taken');
      expectThat(at(accepted, '/payload/risk_level') !== 'R5', 'Its risk level was taken');
    },
  ),
];
