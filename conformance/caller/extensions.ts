import { expectSame } from '../wire/expect.ts';
import { family } from './family.ts';

/** What goes beyond the core is used only where both sides agreed. */
export const extensions = family('extensions', [
  [
    'only-agreed',
    ['HCP-006'],
    'sends no command of an extension that was not agreed on, also when events are missing',
    async (bench) => {
      const session = await bench.running({ gapHoldMs: 400 });
      await session.report(3, 5);
      await session.sees(1, 2, 3, 5);
      await session.complete();
      await session.ends('completed');
      const types = bench.callee.heard.map(({ type }) => type);
      expectSame(types, ['task_submit'], 'What it sent');
    },
  ],
  [
    'unknown-agreed',
    ['HCP-006'],
    'ignores an extension it did not ask for',
    async (bench) => {
      const session = await bench.running({}, { extensions: { 'example.org/tea/1': { sugar: true } } });
      await session.report(3);
      await session.sees(1, 2, 3);
    },
  ],
  [
    'unknown-event',
    ['HCP-222'],
    'handles and counts an event of an extension it does not know',
    async (bench) => {
      const session = await bench.running();
      await session.event(3, 'x-tea-ready', { cups: 2 });
      await session.report(4);
      await session.sees(1, 2, 3, 4);
    },
  ],
  [
    'unknown-message',
    ['HCP-007', 'V-117'],
    'goes on after a message of an extension it does not know',
    async (bench) => {
      const session = await bench.running();
      await bench.callee.say('x-tea', session.sessionId, { cups: 2 });
      await session.report(3);
      await session.sees(1, 2, 3);
    },
  ],
]);
