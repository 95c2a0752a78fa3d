import { expectSame, expectThat } from '../../wire/expect.ts';
import { at, type Heard, tell } from '../../wire/heard.ts';
import type { CalleeBench, Submission } from '../bench.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, HANG, progress } from '../script.ts';

const check = calleeFamily('duplicates');

/** Sends a submit again and hears its answer again, byte for byte; nothing else is said. */
async function expectSameAnswer(bench: CalleeBench, submission: Submission, first: Heard): Promise<void> {
  await bench.send(submission);
  const again = await bench.next({ what: 'the answer again', copies: true });
  expectThat(again.text === first.text, `${tell(again)} is not what was answered before: ${tell(first)}`);
  await bench.quiet({ copies: true });
}

export const duplicatesChecks = [
  check(
    'running',
    ['V-54', 'HCP-102', 'HCP-103'],
    'A submit delivered again is answered as before and starts nothing',
    async (bench) => {
      const session = await bench.start([HANG]);
      await session.state('RUNNING');
      await expectSameAnswer(bench, session.submission, session.accepted);
    },
  ),
  check(
    'at-once',
    ['V-54', 'V-55', 'HCP-102'],
    'Ten deliveries of one submit at once make one session',
    async (bench) => {
      const submission = bench.draft([progress(), HANG]);
      await Promise.all(Array.from({ length: 10 }, () => bench.send(submission)));
      const session = await bench.accepted(submission);
      await session.event('progress');
      await bench.quiet();
      const texts = new Set(
        bench.arrived
          .filter(({ type, sessionId }) => type === 'task_accepted' && sessionId === session.id)
          .map(({ text }) => text),
      );
      expectSame(texts.size, 1, 'The number of different answers');
    },
  ),
  check(
    'completed',
    ['V-56', 'HCP-104'],
    'A submit delivered again after the end is answered as before',
    async (bench) => {
      const session = await bench.run();
      await expectSameAnswer(bench, session.submission, session.accepted);
    },
  ),
  check(
    'aborted',
    ['V-56', 'HCP-103'],
    'A submit delivered again after an abort is answered as before',
    async (bench) => {
      const session = await bench.start([HANG]);
      await session.abort();
      await session.hearOut();
      await expectSameAnswer(bench, session.submission, session.accepted);
    },
  ),
  check('rejected', ['V-57', 'HCP-103'], 'A rejected submit delivered again is rejected as before', async (bench) => {
    const submission = await bench.submit([], { payload: { capability: 'conformance.unknown' } });
    await expectSameAnswer(bench, submission, await bench.rejected(submission));
  }),
  check(
    'other-payload',
    ['V-58'],
    'Another task under a message id that was used gets the first answer',
    async (bench) => {
      const session = await bench.start([HANG]);
      await session.state('RUNNING');
      const { messageId } = session.submission;
      await expectSameAnswer(bench, bench.draft([COMPLETE], { messageId }), session.accepted);
    },
  ),
  check('upper-case', ['D-31'], 'A message id in capital letters is the same message id', async (bench) => {
    const session = await bench.start([HANG]);
    await session.state('RUNNING');
    const messageId = session.submission.messageId.toUpperCase();
    await expectSameAnswer(bench, bench.draft([HANG], { messageId }), session.accepted);
  }),
  check('other-caller', ['V-59'], 'The same message id from another caller is another task', async (bench) => {
    const session = await bench.start([HANG]);
    const other = await bench.another();
    const { messageId } = session.submission;
    const second = await other.start([HANG], { messageId });
    expectThat(second.id !== session.id, 'Both callers were given the same session');
  }),
  check('new-id', ['HCP-102'], 'The same task under a new message id is a new session', async (bench) => {
    const [one, other] = [await bench.start([HANG]), await bench.start([HANG])];
    expectThat(one.id !== other.id, 'Both submits were given the same session');
  }),
  check('answer-id', ['HCP-103'], 'The answer that is sent again keeps its message id', async (bench) => {
    const session = await bench.start([HANG]);
    await session.state('RUNNING');
    await bench.send(session.submission);
    const again = await bench.next({ what: 'the answer again', copies: true });
    expectSame(at(again, '/message_id'), at(session.accepted, '/message_id'), 'The message_id of the answer');
  }),
];
