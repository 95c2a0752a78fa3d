import { randomUUID } from 'node:crypto';
import { expectSame, expectThat } from '../../wire/expect.ts';
import { at, isEvent, tell } from '../../wire/heard.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, checkpoint, fail, HANG, progress } from '../script.ts';

const check = calleeFamily('core');

/** A command of an extension that was not negotiated meets silence. */
function ignores(type: string, payload: object = {}) {
  return check(type, ['D-25'], `${type} is ignored where it was not agreed on`, async (bench) => {
    const session = await bench.start([HANG]);
    await session.state('RUNNING');
    await session.command(type, payload);
    await bench.quiet({ copies: true });
  });
}

export const coreChecks = [
  check('no-extensions', ['D-25'], 'A task that asks for no extension is told of none', async (bench) => {
    await bench.run([progress(), checkpoint(), COMPLETE]);
    await bench.run([fail()]);
    for (const heard of bench.arrived) {
      const extensions = at(heard, '/payload/extensions') ?? {};
      expectSame(extensions, {}, `The extensions in ${tell(heard)}`);
    }
  }),
  check(
    'core-messages',
    ['D-25'],
    'A task that asks for no extension hears core messages and events alone',
    async (bench) => {
      await bench.run([progress(), checkpoint(), COMPLETE]);
      const types = bench.arrived.map((heard) =>
        isEvent(heard) ? String(at(heard, '/payload/event_type')) : heard.type,
      );
      expectSame(
        types.filter((type) => type.startsWith('x-')),
        [],
        'What belongs to an extension',
      );
    },
  ),
  check(
    'unknown-optional',
    ['D-25', 'HCP-006'],
    'An extension nobody knows, and nobody needs, is left out',
    async (bench) => {
      const extensions = { 'conformance.example/unknown/1': { required: false } };
      const { accepted } = await bench.start([COMPLETE], { payload: { extensions } });
      expectSame(at(accepted, '/payload/extensions') ?? {}, {}, 'The extensions in force');
    },
  ),
  check('unknown-required', ['D-25'], 'A task that needs an extension nobody knows is rejected', async (bench) => {
    const extensions = { 'conformance.example/unknown/1': { required: true } };
    await bench.rejected(await bench.submit([COMPLETE], { payload: { extensions } }), 'invalid_input');
  }),
  ignores('x-replay', { from_sequence: 1, to_sequence: 2 }),
  ignores('x-status'),
  ignores('x-pause'),
  ignores('x-resume'),
  check(
    'x-unknown',
    ['D-25', 'HCP-130'],
    'A command of an unknown extension is put aside without a word',
    async (bench) => {
      await bench.command('x-conformance-unknown', randomUUID(), { any: 'thing' });
      await bench.quiet();
    },
  ),
  check('describe', ['V-48'], 'hcp.describe tells what is offered, or is not offered itself', async (bench) => {
    const submission = await bench.submit([], { payload: { capability: 'hcp.describe', inputs: {} } });
    const answer = await bench.answer(submission);
    if (answer.type === 'task_rejected') {
      expectSame(at(answer, '/payload/reason_code'), 'capability_not_found', 'The reason_code');
      return;
    }
    const result = await bench.next({ what: 'the description', where: ({ type }) => type === 'task_completed' });
    expectSame(at(result, '/payload/outputs/callee_id'), bench.calleeId, 'callee_id');
    const offered = JSON.stringify(at(result, '/payload/outputs/capabilities'));
    expectThat(offered?.includes('"hcp.conformance"'), 'hcp.conformance is not among the capabilities');
  }),
];
