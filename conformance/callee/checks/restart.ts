import { expectSame, expectThat } from '../../wire/expect.ts';
import { at, type Heard, isEvent, timeOf } from '../../wire/heard.ts';
import { expectLawful } from '../../wire/stream.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, HANG, PAUSE, progress, RESUME } from '../script.ts';
import type { Session } from '../session.ts';

const family = calleeFamily('restart');

/** A check that needs a restart command. */
const check: typeof family = (name, requirements, title, run) =>
  family(name, requirements, title, async (bench) => {
    bench.needsRestart();
    await run(bench);
  });

const steps = (count: number) => Array.from({ length: count }, (_, i) => progress(`Nr. ${i}`));

function reasons({ heard }: Session): unknown[] {
  return heard
    .filter((message) => isEvent(message, 'state_changed'))
    .map((message) => at(message, '/payload/data/reason'));
}

export const restartChecks = [
  check(
    'checkpoint',
    ['V-16', 'HCP-117', 'HCP-118', 'HCP-119'],
    'A task goes on behind its last checkpoint, in the same session',
    async (bench) => {
      const session = await bench.start([
        progress('before'),
        checkpoint(),
        { sleep_ms: 2500 },
        progress('behind'),
        COMPLETE,
      ]);
      await session.event('checkpoint_created');
      await bench.restart();
      await session.hearOut(bench.restartMs);
      expectLawful(session.heard);
      const recovery = ['safety_check_passed', 'callee_restarted', 'recovered_from_checkpoint', 'task_completed'];
      expectSame(reasons(session), recovery, 'The reasons of its states');
      const told = session.heard.filter((heard) => isEvent(heard, 'progress'));
      const messages = told.map((heard) => at(heard, '/payload/data/message'));
      expectSame(messages, ['before', 'behind'], 'What was done');
    },
  ),
  check('no-checkpoint', ['V-17'], 'A task without a checkpoint is failed: internal_error', async (bench) => {
    const session = await bench.start([progress(), HANG]);
    await session.event('progress');
    await bench.restart();
    await session.hearOut(bench.restartMs);
    expectLawful(session.heard);
    const end = [
      'task_failed internal_error',
      'E4 RUNNING→FAILED callee_restarted',
      'E5 closed FAILED callee_restarted',
    ];
    expectSame(session.story.slice(-3), end, 'The end');
  }),
  check('paused', ['HCP-117'], 'A paused task with a checkpoint can still be ended', async (bench) => {
    const session = await bench.start([checkpoint(), PAUSE, { sleep_ms: 60_000 }, RESUME]);
    await session.state('PAUSED');
    await bench.restart();
    await session.abort();
    await session.hearOut(bench.restartMs);
    expectLawful(session.heard);
    expectSame(at(session.heard.at(-1) as Heard, '/payload/data/final_state'), 'ABORTED', 'final_state'); // heard out
  }),
  check(
    'mid-stream',
    ['V-18', 'V-19', 'HCP-112', 'HCP-113'],
    'A stream that was cut goes on without a hole, and nothing is said twice otherwise',
    async (bench) => {
      const session = await bench.start([checkpoint(), ...steps(500), COMPLETE]);
      await session.event('progress');
      await bench.restart();
      await session.hearOut(bench.restartMs);
      expectLawful(session.heard);
    },
  ),
  check(
    'finished',
    ['V-18', 'V-56', 'HCP-102'],
    'A submit delivered again after a restart is answered as before',
    async (bench) => {
      const session = await bench.run([progress(), COMPLETE]);
      await bench.restart();
      await bench.send(session.submission);
      const again = await bench.next(
        { what: 'the answer again', copies: true, where: ({ type }) => type === 'task_accepted' },
        bench.restartMs,
      );
      expectThat(again.text === session.accepted.text, 'The answer is not the one from before');
      await bench.quiet();
    },
  ),
  check('aborting', ['V-20'], 'A cleanup that was cut is done again, and ends in ABORTED', async (bench) => {
    const session = await bench.start([{ cleanup_ms: 900 }, progress(), HANG]);
    await session.event('progress');
    await session.abort();
    await session.state('ABORTING');
    await bench.restart();
    await session.hearOut(bench.restartMs);
    expectLawful(session.heard);
    expectSame(at(session.heard.at(-1) as Heard, '/payload/data/final_state'), 'ABORTED', 'final_state'); // heard out
  }),
  check('abort-meanwhile', ['V-81', 'HCP-119'], 'An abort that waited for the restart is done', async (bench) => {
    const session = await bench.start([checkpoint(), { sleep_ms: 60_000 }]);
    await session.event('checkpoint_created');
    const restarted = bench.restart();
    await session.abort();
    await restarted;
    await session.hearOut(bench.restartMs);
    expectLawful(session.heard);
    expectSame(at(session.heard.at(-1) as Heard, '/payload/data/final_state'), 'ABORTED', 'final_state'); // heard out
  }),
  check(
    'submit-meanwhile',
    ['HCP-004', 'HCP-101'],
    'Submits sent during a restart are each done once',
    async (bench) => {
      const restarted = bench.restart();
      const submissions = await Promise.all(
        Array.from({ length: 20 }, () => bench.submit([checkpoint(), progress(), COMPLETE])),
      );
      await restarted;
      for (const submission of submissions) {
        const session = await bench.accepted(submission, bench.restartMs);
        await session.hearOut(bench.restartMs);
        expectLawful(session.heard);
      }
      const accepted = bench.arrived.filter(({ type }) => type === 'task_accepted');
      expectSame(new Set(accepted.map(({ sessionId }) => sessionId)).size, 20, 'The number of sessions');
    },
  ),
  check('deadline', ['HCP-120'], 'A time limit is not prolonged by a restart', async (bench) => {
    const max_duration = 'PT4S';
    const session = await bench.start([checkpoint(), { sleep_ms: 60_000 }], {
      payload: { constraints: { max_duration } },
    });
    const running = await session.state('RUNNING');
    const checkpointed = await session.event('checkpoint_created');
    await bench.restart();
    await session.hearOut(bench.restartMs);
    expectSame(at(session.result, '/payload/error_code'), 'timeout', 'error_code');
    const backAt = timeOf(session.heard.find((heard) => timeOf(heard) > timeOf(checkpointed)) ?? session.result);
    const tookMs = timeOf(session.result) - timeOf(running);
    const allowedMs = Math.max(4000, backAt - timeOf(running)) + 1500;
    expectThat(tookMs < allowedMs, `It was stopped after ${tookMs} ms, allowed were 4000`);
  }),
];
