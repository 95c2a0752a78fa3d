import { expectSame, expectThat } from '../../wire/expect.ts';
import { at, isEvent, sequenceOf } from '../../wire/heard.ts';
import { expectGapless, expectLawfulStates, expectOrderlyEnd, expectUniqueIds } from '../../wire/stream.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, fail, progress } from '../script.ts';

const check = calleeFamily('sequence');
const steps = (count: number) => Array.from({ length: count }, (_, i) => progress(`Nr. ${i}`));

export const sequenceChecks = [
  check('first', ['HCP-111'], 'The first event of a session has sequence 1', async (bench) => {
    const session = await bench.start();
    expectSame(sequenceOf(await session.next()), 1, 'The first sequence');
  }),
  check('gapless', ['HCP-111'], 'Two hundred events are numbered 1, 2, 3 … without a hole', async (bench) => {
    const { heard } = await bench.run([...steps(200), COMPLETE]);
    expectGapless(heard);
    expectSame(heard.length, 2 + 200 + 3, 'The number of messages');
  }),
  check('order', ['HCP-113'], 'Events arrive in the order in which they were said', async (bench) => {
    const { heard } = await bench.run([...steps(100), COMPLETE]);
    const said = heard.filter((message) => isEvent(message, 'progress'));
    const messages = said.map((message) => at(message, '/payload/data/message'));
    expectSame(
      messages,
      messages.map((_, i) => `Nr. ${i}`),
      'The order',
    );
  }),
  check('unique', ['HCP-112'], 'Every message of a session has an id of its own', async (bench) => {
    const { accepted, heard } = await bench.run([...steps(50), checkpoint(), COMPLETE]);
    expectUniqueIds([accepted, ...heard]);
  }),
  check('only-events', ['HCP-111'], 'Only events have a sequence', async (bench) => {
    await bench.run([progress(), COMPLETE]);
    await bench.run([fail()]);
    const numbered = bench.arrived.filter((heard) => !isEvent(heard) && at(heard, '/payload/sequence') !== undefined);
    expectSame(
      numbered.map(({ type }) => type),
      [],
      'What else has a sequence',
    );
  }),
  check('integers', ['HCP-111'], 'Sequences are integers', async (bench) => {
    const { heard } = await bench.run([progress(), COMPLETE]);
    const sequences = heard.filter((message) => isEvent(message)).map((message) => at(message, '/payload/sequence'));
    expectThat(sequences.every(Number.isSafeInteger), `The sequences are ${sequences.join(', ')}`);
  }),
  check('each-session', ['HCP-111', 'V-11'], 'Each session counts for itself', async (bench) => {
    const sessions = await Promise.all([bench.start(steps(5)), bench.start(steps(7))]);
    for (const session of sessions) expectGapless((await session.hearOut()).heard);
  }),
  check('states', ['HCP-109'], 'Each state_changed begins where the last one ended', async (bench) => {
    const { heard } = await bench.run([{ pause: {} }, { resume: {} }, progress(), fail()]);
    expectLawfulStates(heard);
  }),
  check(
    'end',
    ['HCP-110'],
    'The result comes first, then the last state_changed, then session_closed',
    async (bench) => {
      expectOrderlyEnd((await bench.run([progress(), COMPLETE])).heard);
      expectOrderlyEnd((await bench.run([progress(), fail()])).heard);
    },
  ),
];
