import { randomUUID } from 'node:crypto';
import { expectThat } from '../wire/expect.ts';
import type { CallerBench } from './bench.ts';
import { family } from './family.ts';
import type { PlayedSession } from './played-session.ts';

const PROGRESS = { stage: 'conformance', message: 'An event' };

/** What must neither stop a stream nor be taken for an event. */
export const oddMessages = family('odd-messages', [
  [
    'invalid-event',
    ['HCP-005', 'V-114'],
    'counts the number of an event it cannot accept, and goes on',
    async (bench) => {
      const session = await bench.running();
      await session.odd(3, 'progress', { message: 'No stage' });
      await session.report(4);
      await session.sees(1, 2, 4);
    },
  ],
  [
    'bad-sequences',
    ['V-115'],
    'does not count events with numbers that are none',
    async (bench) => {
      const session = await bench.running();
      for (const sequence of ['3', 3.5, -1, null, undefined]) await session.odd(sequence, 'progress', PROGRESS);
      await session.report(3, 4);
      await session.sees(1, 2, 3, 4);
    },
  ],
  [
    'unknown-event-type',
    ['HCP-222', 'V-116'],
    'hands an event of an unknown type to its handler and counts it',
    async (bench) => {
      const session = await bench.running();
      await session.event(3, 'tool_start', { tool: 'hammer' });
      await session.report(4);
      await session.sees(1, 2, 3, 4);
    },
  ],
  [
    'unknown-type',
    ['HCP-007', 'V-117'],
    'goes on after a message of an unknown type',
    (bench) => goesOnAfter(bench, ({ sessionId }) => bench.callee.say('tea_break', sessionId, { minutes: 5 })),
  ],
  [
    'not-json',
    ['HCP-007', 'V-118'],
    'goes on after a message that is no JSON',
    (bench) => goesOnAfter(bench, (session) => saySomething(bench, session, Buffer.from('{"hcp_version":'))),
  ],
  [
    'not-utf-8',
    ['HCP-001', 'HCP-007', 'V-118'],
    'goes on after a message that is no UTF-8',
    (bench) => goesOnAfter(bench, (session) => saySomething(bench, session, Uint8Array.of(0x22, 0xff, 0xfe, 0x22))),
  ],
  [
    'empty',
    ['HCP-007', 'V-118'],
    'goes on after an empty message',
    (bench) => goesOnAfter(bench, (session) => saySomething(bench, session, new Uint8Array())),
  ],
  [
    'not-an-object',
    ['HCP-007'],
    'goes on after JSON that is no object',
    (bench) => goesOnAfter(bench, (session) => saySomething(bench, session, Buffer.from('[1, 2, 3]'))),
  ],
  [
    'no-payload',
    ['HCP-005', 'HCP-007'],
    'goes on after an event whose payload is an array',
    (bench) =>
      goesOnAfter(bench, ({ sessionId }) => bench.callee.say('event', sessionId, {}, { envelope: { payload: [] } })),
  ],
  [
    'deep',
    ['HCP-007'],
    'goes on after JSON that is nested without end',
    (bench) => goesOnAfter(bench, (session) => saySomething(bench, session, Buffer.from('['.repeat(200_000)))),
  ],
  [
    'large',
    ['HCP-012', 'HCP-007'],
    'goes on after a message beyond the size limit',
    (bench) => goesOnAfter(bench, () => bench.callee.say('event', randomUUID(), { note: 'x'.repeat(2 * 1024 * 1024) })),
  ],
  [
    'many',
    ['HCP-007'],
    'goes on after more bad messages than it takes at once',
    (bench) =>
      goesOnAfter(bench, async (session) => {
        for (let count = 0; count < 150; count++) await saySomething(bench, session, Buffer.from('no'));
      }),
  ],
  [
    'other-major',
    ['HCP-006', 'V-119'],
    'does not handle an event of another major version, and goes on',
    async (bench) => {
      const session = await bench.running({ gapHoldMs: 400 });
      await session.odd(3, 'progress', PROGRESS, { envelope: { hcp_version: '2.0' } });
      await session.report(4);
      await session.sees(1, 2, 4);
    },
  ],
  [
    'wrong-direction',
    ['HCP-007'],
    'goes on after a command on its event queue',
    (bench) =>
      goesOnAfter(bench, () => {
        const payload = { capability: 'x', caller_id: bench.callerId, intent: 'Do it', inputs: {} };
        return bench.callee.say('task_submit', null, payload);
      }),
  ],
  [
    'orphan',
    ['HCP-223', 'V-120'],
    'does not handle events of a session it does not know, and goes on',
    async (bench) => {
      const stranger = bench.stranger();
      await goesOnAfter(bench, async () => {
        await stranger.begin();
        await stranger.complete();
      });
      expectThat(stranger.handled.length === 0, 'It handled events of a session nobody asked for');
    },
  ],
  [
    'recovered-in-place',
    ['HCP-231', 'V-130'],
    'follows a recovery that stays in RUNNING',
    async (bench) => {
      const session = await bench.running();
      await session.move(3, 'RUNNING', 'RUNNING', 'recovered_from_checkpoint');
      await session.report(4);
      await session.sees(1, 2, 3, 4);
    },
  ],
  [
    'impossible-transition',
    ['HCP-231', 'V-131'],
    'follows a transition that is none',
    async (bench) => {
      const session = await bench.running();
      await session.move(3, 'RUNNING', 'COMPLETED', 'task_completed');
      await session.move(4, 'COMPLETED', 'RUNNING', 'second_thoughts');
      await session.report(5);
      await session.sees(1, 2, 3, 4, 5);
    },
  ],
]);

/** The stream of a session around something odd is as if that had not been there. */
async function goesOnAfter(bench: CallerBench, odd: (session: PlayedSession) => Promise<void>): Promise<void> {
  const session = await bench.running();
  await session.report(3);
  await odd(session);
  await session.report(4, 5);
  await session.sees(1, 2, 3, 4, 5);
}

function saySomething(bench: CallerBench, session: PlayedSession, body: Uint8Array): Promise<void> {
  return bench.callee.send({ ...bench.callee.compose('event', session.sessionId, {}), body });
}
