import { SkipCheck } from '../../check.ts';
import { expectSame, expectThat } from '../../wire/expect.ts';
import { at, type Heard, isEvent, sequenceOf } from '../../wire/heard.ts';
import type { CalleeBench } from '../bench.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, fail, HANG, progress, type Script } from '../script.ts';
import type { Session } from '../session.ts';

const check = calleeFamily('extensions');
const asking = (name: string) => ({ payload: { extensions: { [name]: { required: false } } } });

/** A session with the extension in force, if the callee offers it. */
async function agreed(bench: CalleeBench, name: string, script: Script = [HANG]): Promise<Session> {
  const session = await bench.start(script, asking(name));
  const inForce = at(session.accepted, '/payload/extensions');
  if (!Object.hasOwn(Object(inForce), name)) throw new SkipCheck(`The callee does not offer ${name}`);
  return session;
}

/** The same bytes again, as many times as these events. */
async function expectReplayed(bench: CalleeBench, events: readonly Heard[]): Promise<void> {
  for (const event of events) {
    const again = await bench.next({
      what: `event ${sequenceOf(event)} again`,
      where: ({ sessionId }) => sessionId === event.sessionId,
      copies: true,
    });
    expectThat(again.text === event.text, `Event ${sequenceOf(event)} was sent again otherwise than before`);
  }
}

/** Works for some time, in short steps. */
const STEADY: Script = Array.from({ length: 400 }, (_, i) => (i % 2 ? progress() : { sleep_ms: 50 }));

const eventsOf = ({ heard }: Session) => heard.filter((message) => isEvent(message));

export const extensionsChecks = [
  check('replay', ['replay/1'], 'Events that are asked for again come again, byte for byte', async (bench) => {
    const session = await agreed(bench, 'replay/1', [progress('a'), progress('b'), progress('c'), HANG]);
    await session.event('progress');
    await session.event('progress');
    await session.event('progress');
    await session.command('x-replay', { from_sequence: 2, to_sequence: 4 });
    await expectReplayed(bench, eventsOf(session).slice(1, 4));
    await bench.quiet({ copies: true });
  }),
  check('replay-closed', ['replay/1'], 'Events come again after the end of the session', async (bench) => {
    const session = await agreed(bench, 'replay/1', [progress(), COMPLETE]);
    await session.hearOut();
    await session.command('x-replay', { from_sequence: 1, to_sequence: 5 });
    await expectReplayed(bench, eventsOf(session));
    await bench.quiet({ copies: true });
  }),
  check('replay-beyond', ['replay/1'], 'Events that were never said are told to be unavailable', async (bench) => {
    const session = await agreed(bench, 'replay/1');
    await session.state('RUNNING');
    await session.command('x-replay', { from_sequence: 50, to_sequence: 60 });
    const told = await session.event('x-replay-unavailable');
    const range = ['from_sequence', 'to_sequence'].map((name) => at(told, `/payload/data/${name}`));
    expectSame(range, [50, 60], 'The range');
    expectSame(sequenceOf(told), 3, 'Its sequence');
  }),
  check('replay-token', ['replay/1', 'V-76'], 'Events are not sent again for a wrong token', async (bench) => {
    const session = await agreed(bench, 'replay/1');
    await session.state('RUNNING');
    await session.command('x-replay', { from_sequence: 1, to_sequence: 2, session_token: 'wrong' });
    await bench.quiet({ copies: true });
  }),
  check('replay-backwards', ['replay/1'], 'A range that ends before it begins is put aside', async (bench) => {
    const session = await agreed(bench, 'replay/1');
    await session.state('RUNNING');
    await session.command('x-replay', { from_sequence: 2, to_sequence: 1 });
    await bench.quiet({ copies: true });
  }),
  check('status', ['status/1'], 'The state of a running session is told', async (bench) => {
    const session = await agreed(bench, 'status/1');
    await session.state('RUNNING');
    await session.command('x-status');
    const told = await session.event('x-status');
    expectSame(at(told, '/payload/data/state'), 'RUNNING', 'state');
    expectSame(at(told, '/payload/data/result_sent'), false, 'result_sent');
  }),
  check(
    'status-closed',
    ['status/1', 'HCP-115'],
    'The state of an ended session is told outside its stream',
    async (bench) => {
      const session = await agreed(bench, 'status/1', [COMPLETE]);
      await session.hearOut();
      await session.command('x-status');
      const told = await session.next('x-status');
      expectSame(at(told, '/payload/data/state'), 'COMPLETED', 'state');
      expectSame(at(told, '/payload/data/last_sequence'), 4, 'last_sequence');
      expectSame(at(told, '/payload/data/result_sent'), true, 'result_sent');
      expectThat(sequenceOf(told) <= 4, 'It goes on with the sequences behind session_closed');
    },
  ),
  check('status-token', ['status/1', 'V-76'], 'Nothing is told for a wrong token', async (bench) => {
    const session = await agreed(bench, 'status/1');
    await session.state('RUNNING');
    await session.command('x-status', { session_token: 'wrong' });
    await bench.quiet();
  }),
  check('stream-completed', ['stream/1'], 'A result tells how many events came before it', async (bench) => {
    const session = await (await agreed(bench, 'stream/1', [progress(), COMPLETE])).hearOut();
    expectSame(at(session.result, '/payload/extensions/stream~11/last_sequence'), 3, 'last_sequence');
  }),
  check('stream-failed', ['stream/1'], 'A failure tells how many events came before it', async (bench) => {
    const session = await (await agreed(bench, 'stream/1', [progress(), progress(), fail()])).hearOut();
    expectSame(at(session.result, '/payload/extensions/stream~11/last_sequence'), 4, 'last_sequence');
  }),
  check('pause', ['pause/1'], 'A task is paused and resumed by its caller, and goes on', async (bench) => {
    const session = await agreed(bench, 'pause/1', STEADY);
    await session.state('RUNNING');
    await session.command('x-pause');
    expectSame(at(await session.state('PAUSED'), '/payload/data/reason'), 'paused_by_caller', 'reason');
    await session.command('x-resume');
    expectSame(at(await session.state('RUNNING'), '/payload/data/reason'), 'resumed_by_caller', 'reason');
    await session.event('progress');
  }),
  check('pause-token', ['pause/1', 'V-76'], 'A task is not paused for a wrong token', async (bench) => {
    const session = await agreed(bench, 'pause/1');
    await session.state('RUNNING');
    await session.command('x-pause', { session_token: 'wrong' });
    await bench.quiet();
  }),
  check('pause-abort', ['pause/1', 'V-71'], 'A task paused by its caller can be aborted', async (bench) => {
    const session = await agreed(bench, 'pause/1', STEADY);
    await session.state('RUNNING');
    await session.command('x-pause');
    await session.state('PAUSED');
    await session.abort();
    await session.state('ABORTED');
  }),
  check('resume', ['resume/1'], 'A new session continues from the checkpoint of an ended one', async (bench) => {
    const { id, created } = await endedAtCheckpoint(bench);
    const checkpointId = at(created, '/payload/data/checkpoint_id');
    const extensions = { 'resume/1': { session_id: id, checkpoint_id: checkpointId, required: false } };
    const script = [progress('before'), checkpoint(), progress('behind'), COMPLETE];
    const session = await bench.start(script, { payload: { extensions } });
    if (!Object.hasOwn(Object(at(session.accepted, '/payload/extensions')), 'resume/1')) {
      throw new SkipCheck('The callee does not offer resume/1');
    }
    await session.hearOut();
    expectThat(session.id !== id, 'It has the old session id');
    const told = session.heard.filter((heard) => isEvent(heard, 'progress'));
    expectSame(
      told.map((heard) => at(heard, '/payload/data/message')),
      ['behind'],
      'What was done again',
    );
    expectSame(sequenceOf(told[0] as Heard), 3, 'The sequence of what comes first'); // there is one
  }),
  check('resume-unknown', ['resume/1'], 'A checkpoint nobody knows is no place to continue from', async (bench) => {
    const { id } = await endedAtCheckpoint(bench);
    const extensions = { 'resume/1': { session_id: id, checkpoint_id: 'ckpt-unknown', required: false } };
    const answer = await bench.answer(await bench.submit([COMPLETE], { payload: { extensions } }));
    if (answer.type === 'task_accepted') {
      const isInForce = Object.hasOwn(Object(at(answer, '/payload/extensions')), 'resume/1');
      expectThat(!isInForce, 'It was accepted');
      throw new SkipCheck('The callee does not offer resume/1');
    }
    expectSame(at(answer, '/payload/reason_code'), 'invalid_input', 'The reason_code');
  }),
];

async function endedAtCheckpoint(bench: CalleeBench): Promise<{ readonly id: string; readonly created: Heard }> {
  const session = await bench.start([progress('before'), checkpoint(), fail()]);
  const created = await session.event('checkpoint_created');
  await session.hearOut();
  return { id: session.id, created };
}
