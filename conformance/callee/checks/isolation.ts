import { expectSame, expectThat } from '../../wire/expect.ts';
import { at, isEvent } from '../../wire/heard.ts';
import { expectLawful } from '../../wire/stream.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, fail, HANG, progress } from '../script.ts';

const check = calleeFamily('isolation');
const steps = (count: number, of: string) => Array.from({ length: count }, (_, i) => progress(`${of} ${i}`));

export const isolationChecks = [
  check('two', ['V-11'], 'Two submits at once are two sessions, each told whose it is', async (bench) => {
    const submissions = await Promise.all([bench.submit([HANG]), bench.submit([HANG])]);
    const sessions = await Promise.all(submissions.map((submission) => bench.accepted(submission)));
    expectThat(sessions[0]?.id !== sessions[1]?.id, 'Both were given the same session');
    const answered = sessions.map(({ accepted }) => at(accepted, '/payload/in_reply_to'));
    expectSame(
      answered,
      submissions.map(({ messageId }) => messageId),
      'What they answer',
    );
  }),
  check('interleaved', ['V-12', 'HCP-113'], 'Ten sessions at once each keep the laws of the stream', async (bench) => {
    const scripts = Array.from({ length: 10 }, (_, i) => [...steps(10 + i, `S${i}`), { sleep_ms: 5 }, COMPLETE]);
    const sessions = await Promise.all(scripts.map((script) => bench.start(script)));
    for (const [i, session] of sessions.entries()) {
      await session.hearOut();
      expectLawful(session.heard);
      const told = session.heard.filter((heard) => isEvent(heard, 'progress'));
      const messages = told.map((heard) => at(heard, '/payload/data/message'));
      expectSame(
        messages,
        messages.map((_, n) => `S${i} ${n}`),
        `What session ${i} told`,
      );
    }
  }),
  check('outputs', ['HCP-113'], 'Each session has its own outputs', async (bench) => {
    const sessions = await Promise.all(
      [1, 2, 3, 4, 5].map((n) => bench.start([{ sleep_ms: 30 - 5 * n }, { complete: { outputs: { n } } }])),
    );
    for (const session of sessions) await session.hearOut();
    const outputs = sessions.map(({ result }) => at(result, '/payload/outputs/n'));
    expectSame(outputs, [1, 2, 3, 4, 5], 'The outputs');
  }),
  check('no-waiting', ['HCP-125'], 'A short task does not wait for a long one', async (bench) => {
    const long = await bench.start([HANG]);
    await long.state('RUNNING');
    const short = await bench.run();
    expectSame(short.result.type, 'task_completed', 'The result of the short task');
  }),
  check('many-hanging', ['HCP-125'], 'Thirty tasks that hang keep nobody from being served', async (bench) => {
    const submissions = await Promise.all(Array.from({ length: 30 }, () => bench.submit([HANG])));
    for (const submission of submissions) await bench.accepted(submission);
    await bench.stillServes();
  }),
  check('failure', ['HCP-128'], 'The failure of one task is nothing to another', async (bench) => {
    const other = await bench.start([{ sleep_ms: 200 }, COMPLETE]);
    await bench.run([fail()]);
    await other.hearOut();
    expectSame(other.result.type, 'task_completed', 'The result of the other task');
  }),
  check('callers', ['HCP-108'], 'Two callers at once are each told of their own sessions', async (bench) => {
    const other = await bench.another();
    const [mine, theirs] = await Promise.all([bench.start(steps(20, 'a')), other.start(steps(20, 'b'))]);
    await Promise.all([mine.hearOut(), theirs.hearOut()]);
    const sessions = [bench, other].map(({ arrived }) => [...new Set(arrived.map(({ sessionId }) => sessionId))]);
    expectSame(sessions, [[mine.id], [theirs.id]], 'The sessions each was told of');
  }),
];
