import { parseDuration } from '../../../shared/durations.ts';
import { expectMatch, expectSame, expectThat } from '../../wire/expect.ts';
import { at } from '../../wire/heard.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, fail, progress } from '../script.ts';

const check = calleeFamily('result');
const OUTPUTS = { thickness_nm: 20.3, table: [[1, 2], [3]], name: 'ä€😀', nothing: null, flags: { ok: true } };
const finishing = (outputs: object) => [{ complete: { outputs } }];

export const resultChecks = [
  check('outputs', ['HCP-126'], 'task_completed carries the outputs as they were made', async (bench) => {
    const { result } = await bench.run(finishing(OUTPUTS));
    expectSame(at(result, '/payload/outputs'), OUTPUTS, 'outputs');
  }),
  check('once', ['HCP-110'], 'A session has one result', async (bench) => {
    const { heard } = await bench.run([progress(), COMPLETE]);
    const results = heard.filter(({ type }) => type === 'task_completed' || type === 'task_failed');
    expectSame(results.length, 1, 'The number of results');
  }),
  check('required', ['HCP-126'], 'Outputs with the fields that are required complete the task', async (bench) => {
    const expected_output = { required_fields: ['name', 'nothing'] };
    const { result } = await bench.run(finishing(OUTPUTS), { payload: { expected_output } });
    expectSame(result.type, 'task_completed', 'The result');
  }),
  check('required-missing', ['V-85', 'HCP-126'], 'Outputs without a required field fail the task', async (bench) => {
    const expected_output = { required_fields: ['name', 'colour'] };
    const { result } = await bench.run(finishing(OUTPUTS), { payload: { expected_output } });
    expectSame(at(result, '/payload/error_code'), 'execution_error', 'error_code');
    expectSame(at(result, '/payload/error_details/phase'), 'output_validation', 'phase');
  }),
  check(
    'required-partial',
    ['V-85', 'HCP-127'],
    'Outputs that do not fit are handed over as partial',
    async (bench) => {
      const expected_output = { required_fields: ['colour'] };
      const { result } = await bench.run(finishing(OUTPUTS), { payload: { expected_output } });
      expectSame(at(result, '/payload/partial_outputs'), OUTPUTS, 'partial_outputs');
    },
  ),
  check(
    'required-inherited',
    ['HCP-126'],
    'A required field must be there itself, whatever its name',
    async (bench) => {
      const expected_output = { required_fields: ['toString'] };
      const { result } = await bench.run(finishing(OUTPUTS), { payload: { expected_output } });
      expectSame(result.type, 'task_failed', 'The result');
    },
  ),
  check('schema', ['HCP-126'], 'Outputs that fit the expected schema complete the task', async (bench) => {
    const schema = { type: 'object', properties: { thickness_nm: { type: 'number', maximum: 25 } } };
    const { result } = await bench.run(finishing(OUTPUTS), { payload: { expected_output: { schema } } });
    expectSame(result.type, 'task_completed', 'The result');
  }),
  check('schema-broken', ['V-85', 'HCP-126'], 'Outputs that break the expected schema fail the task', async (bench) => {
    const schema = { type: 'object', properties: { thickness_nm: { type: 'number', maximum: 10 } } };
    const { result } = await bench.run(finishing(OUTPUTS), { payload: { expected_output: { schema } } });
    expectSame(at(result, '/payload/error_details/phase'), 'output_validation', 'phase');
  }),
  check('summary', ['HCP-132'], 'The summary counts checkpoints and warnings and tells the time', async (bench) => {
    const warning = { warning: { code: 'low', message: 'Low on acid' } };
    const { result } = await bench.run([checkpoint(), warning, checkpoint(), { sleep_ms: 50 }, COMPLETE]);
    const summary = at(result, '/payload/execution_summary') as Record<string, unknown> | undefined; // by its schema
    expectSame(summary?.checkpoints_created, 2, 'checkpoints_created');
    expectSame((summary?.warnings as unknown[] | undefined)?.length, 1, 'The number of warnings');
    const tookMs = parseDuration(String(summary?.duration));
    expectThat(tookMs !== undefined && tookMs >= 40, `The duration is ${summary?.duration}, but the task took 50 ms`);
  }),
  check('failure', ['HCP-128'], 'task_failed says what went wrong', async (bench) => {
    const { result } = await bench.run([fail('resource_unavailable', 'The oven is in use')]);
    expectSame(at(result, '/payload/error_code'), 'resource_unavailable', 'error_code');
    expectMatch(at(result, '/payload/error_message'), /The oven is in use/, 'error_message');
  }),
  check(
    'failure-reason',
    ['HCP-110'],
    'The code of a failure is the reason of RUNNING→FAILED and session_closed',
    async (bench) => {
      const { story } = await bench.run([fail('input_error', 'No')]);
      const end = ['task_failed input_error', 'E3 RUNNING→FAILED input_error', 'E4 closed FAILED input_error'];
      expectSame(story.slice(-3), end, 'The end');
    },
  ),
  check('no-secret', ['HCP-014'], 'The token is told in task_accepted and session_created alone', async (bench) => {
    const session = await bench.run([progress(), checkpoint(), fail()]);
    const telling = session.heard.filter(({ text }) => text.includes(session.token));
    expectSame(telling.length, 1, 'The number of messages with the token behind task_accepted');
  }),
];
