import { expectSame, expectThat } from '../../wire/expect.ts';
import { timeOf } from '../../wire/heard.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, HANG, PAUSE, progress, type Script } from '../script.ts';

const check = calleeFamily('time');
const limited = (max_duration: string) => ({ payload: { constraints: { max_duration } } });
const LIMIT_MS = 1000;
/** HCP-120 gives a second; a busy machine takes some more. */
const SLACK_MS = 1500;

/** A script that is stopped by a limit of a second, with this end. */
function stopped(name: string, requirements: readonly string[], title: string, script: Script, end: readonly string[]) {
  return check(name, requirements, title, async (bench) => {
    const session = await bench.start(script, limited('PT1S'));
    const running = await session.state('RUNNING');
    await session.hearOut(LIMIT_MS + bench.waitMs);
    expectSame(session.story.slice(-end.length), end, 'The end');
    const tookMs = timeOf(session.result) - timeOf(running);
    const isInTime = tookMs > LIMIT_MS - 100 && tookMs < LIMIT_MS + SLACK_MS;
    expectThat(isInTime, `It was stopped after ${tookMs} ms, allowed were ${LIMIT_MS}`);
  });
}

export const timeChecks = [
  stopped(
    'running',
    ['V-08', 'HCP-120'],
    'A task that runs too long is failed: timeout',
    [HANG],
    ['task_failed timeout', 'E3 RUNNING→FAILED timeout', 'E4 closed FAILED timeout'],
  ),
  stopped(
    'paused',
    ['V-09', 'HCP-120'],
    'A task that is paused too long runs first, and is failed: timeout',
    [PAUSE, HANG],
    [
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING timeout',
      'task_failed timeout',
      'E5 RUNNING→FAILED timeout',
      'E6 closed FAILED timeout',
    ],
  ),
  stopped(
    'working',
    ['V-08', 'HCP-120'],
    'Progress does not put the end off',
    [checkpoint(), { sleep_ms: 300 }, progress(), HANG],
    ['task_failed timeout', 'E5 RUNNING→FAILED timeout', 'E6 closed FAILED timeout'],
  ),
  check('in-time', ['HCP-120'], 'A task that ends in time is completed', async (bench) => {
    const session = await bench.run([{ sleep_ms: 100 }, COMPLETE], limited('PT2S'));
    expectSame(session.result.type, 'task_completed', 'The result');
  }),
  check('fractions', ['HCP-120'], 'A limit may have fractions of a second', async (bench) => {
    const session = await bench.run([HANG], limited('PT0.3S'));
    expectSame(session.story.at(-1), 'E4 closed FAILED timeout', 'The end');
  }),
  check('aborting', ['HCP-120', 'HCP-123'], 'The limit does not cut a cleanup short', async (bench) => {
    const session = await bench.start([{ cleanup_ms: 700 }, progress(), HANG], limited('PT0.6S'));
    await session.event('progress');
    await session.abort();
    await session.hearOut();
    // On a busy machine the limit may come before the abort.
    const isTooLate = session.story.at(-1) === 'E5 closed FAILED timeout';
    if (!isTooLate) expectSame(session.story.at(-1), 'E6 closed ABORTED cleanup_complete', 'The end');
  }),
  check('others', ['HCP-120'], 'The limit of one task is not that of another', async (bench) => {
    const other = await bench.start([{ sleep_ms: 900 }, COMPLETE]);
    await bench.run([HANG], limited('PT0.3S'));
    await other.hearOut();
    expectSame(other.result.type, 'task_completed', 'The result of the other task');
  }),
];
