import { parseDuration } from '../../../shared/durations.ts';
import { SkipCheck } from '../../check.ts';
import { expectSame, expectThat } from '../../wire/expect.ts';
import { at, isEvent, tell } from '../../wire/heard.ts';
import { expectLawful } from '../../wire/stream.ts';
import type { SubmitChanges } from '../bench.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, fail, HANG, PAUSE, progress, RESUME, type Script } from '../script.ts';

const check = calleeFamily('lifecycle');
const START = ['task_accepted', 'E1 session_created', 'E2 PENDING→RUNNING safety_check_passed'];

/** A script whose story is exactly this one, behind the start. */
function tells(
  name: string,
  requirements: readonly string[],
  title: string,
  script: Script,
  story: readonly string[],
  changes?: SubmitChanges,
) {
  return check(name, requirements, title, async (bench) => {
    const session = await bench.run(script, changes);
    expectSame(session.story, [...START, ...story], 'The story');
  });
}

export const lifecycleChecks = [
  tells(
    'complete',
    ['V-01'],
    'A task that succeeds is completed and closed',
    [progress(), COMPLETE],
    ['E3 progress', 'task_completed', 'E4 RUNNING→COMPLETED task_completed', 'E5 closed COMPLETED task_completed'],
  ),
  tells(
    'empty',
    ['V-01'],
    'A task with nothing to do is completed',
    [],
    ['task_completed', 'E3 RUNNING→COMPLETED task_completed', 'E4 closed COMPLETED task_completed'],
  ),
  tells(
    'fail',
    ['V-02'],
    'A task that fails is failed and closed',
    [fail()],
    ['task_failed execution_error', 'E3 RUNNING→FAILED execution_error', 'E4 closed FAILED execution_error'],
  ),
  tells(
    'pause',
    ['V-04'],
    'A task pauses, goes on and is completed',
    [PAUSE, RESUME, COMPLETE],
    [
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING resumed_by_callee',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      'E6 closed COMPLETED task_completed',
    ],
  ),
  tells(
    'pause-twice',
    ['HCP-109'],
    'Pausing what is paused, and resuming what runs, says nothing',
    [RESUME, PAUSE, PAUSE, RESUME, RESUME],
    [
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING resumed_by_callee',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      'E6 closed COMPLETED task_completed',
    ],
  ),
  tells(
    'complete-paused',
    ['HCP-109'],
    'A paused task that succeeds runs first',
    [PAUSE, COMPLETE],
    [
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING task_completed',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      'E6 closed COMPLETED task_completed',
    ],
  ),
  tells(
    'fail-paused',
    ['HCP-109'],
    'A paused task that fails runs first',
    [PAUSE, fail()],
    [
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING execution_error',
      'task_failed execution_error',
      'E5 RUNNING→FAILED execution_error',
      'E6 closed FAILED execution_error',
    ],
  ),
  tells(
    'talk-paused',
    ['HCP-109'],
    'A paused task may still tell',
    [PAUSE, progress(), checkpoint(), RESUME],
    [
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 progress',
      'E5 checkpoint_created',
      'E6 PAUSED→RUNNING resumed_by_callee',
      'task_completed',
      'E7 RUNNING→COMPLETED task_completed',
      'E8 closed COMPLETED task_completed',
    ],
  ),
  check('checkpoint-fail', ['V-05', 'HCP-127'], 'A failure names the last checkpoint', async (bench) => {
    const session = await bench.run([checkpoint(), progress(), fail()]);
    const created = session.heard.find((heard) => isEvent(heard, 'checkpoint_created'));
    expectThat(created, 'No checkpoint was told');
    const last = at(session.result, '/payload/error_details/last_checkpoint');
    expectSame(last, at(created, '/payload/data/checkpoint_id'), 'last_checkpoint');
  }),
  check('abort', ['V-06'], 'An aborted task cleans up and is closed without a result', async (bench) => {
    const session = await bench.start([{ cleanup_ms: 100 }, progress(), HANG]);
    await session.event('progress');
    await session.abort();
    await session.hearOut();
    const story = ['E3 progress', 'E4 RUNNING→ABORTING abort_requested'];
    const end = ['E5 ABORTING→ABORTED cleanup_complete', 'E6 closed ABORTED cleanup_complete'];
    expectSame(session.story, [...START, ...story, ...end], 'The story');
  }),
  check('abort-paused', ['V-07'], 'A paused task is aborted without running again', async (bench) => {
    const session = await bench.start([PAUSE, HANG]);
    await session.state('PAUSED');
    await session.abort();
    await session.hearOut();
    const story = ['E3 RUNNING→PAUSED paused_by_callee', 'E4 PAUSED→ABORTING abort_requested'];
    const end = ['E5 ABORTING→ABORTED cleanup_complete', 'E6 closed ABORTED cleanup_complete'];
    expectSame(session.story, [...START, ...story, ...end], 'The story');
  }),
  check(
    'abort-timeout',
    ['V-13', 'HCP-123'],
    'A cleanup that takes too long is cut off with a warning',
    async (bench) => {
      const session = await bench.start([{ cleanup_ms: 60_000 }, progress(), HANG]);
      const limitMs = Number(parseDuration(String(at(session.accepted, '/payload/constraints/abort_timeout'))));
      await session.event('progress');
      if (!(limitMs <= 2000)) throw new SkipCheck('The abort_timeout of the callee is longer than PT2S');
      await session.abort();
      await session.hearOut(limitMs + bench.waitMs);
      const end = ['E5 warning', 'E6 ABORTING→ABORTED abort_timeout', 'E7 closed ABORTED abort_timeout'];
      expectSame(session.story.slice(-3), end, 'The end');
    },
  ),
  check(
    'abort-race',
    ['V-15', 'HCP-109'],
    'A task aborted as it ends is completed or aborted, never both',
    async (bench) => {
      const sessions = await Promise.all(
        Array.from({ length: 12 }, (_, i) => bench.start([{ sleep_ms: 4 * i }, progress(), COMPLETE])),
      );
      await Promise.all(sessions.map((session) => session.abort()));
      for (const session of sessions) {
        await session.hearOut();
        expectLawful(session.heard);
      }
    },
  ),
  check('silence-after-end', ['HCP-115'], 'Nothing is said of a session behind session_closed', async (bench) => {
    const session = await bench.run([progress(), COMPLETE]);
    await bench.quiet();
    const later = bench.arrived.slice(bench.arrived.indexOf(session.heard.at(-1) ?? session.accepted) + 1);
    const said = later.filter(({ sessionId }) => sessionId === session.id);
    expectSame(said.map(tell), [], 'What was said behind session_closed');
  }),
  check(
    'laws',
    ['HCP-109', 'HCP-110', 'HCP-111'],
    'A long and eventful session keeps every law of the stream',
    async (bench) => {
      const turn: Script = [progress(), PAUSE, checkpoint(), RESUME, { log: { level: 'info', message: 'On we go' } }];
      const session = await bench.run([...turn, ...turn, ...turn, ...turn, COMPLETE]);
      expectLawful(session.heard);
      expectSame(session.heard.length, 2 + 4 * 5 + 3, 'The number of messages');
    },
  ),
];
