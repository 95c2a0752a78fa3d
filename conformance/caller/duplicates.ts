import { expectThat } from '../wire/expect.ts';
import { family } from './family.ts';

/** What comes more than once. */
export const duplicates = family('duplicates', [
  [
    'again',
    ['HCP-207', 'V-100'],
    'does not handle an event that comes again',
    async (bench) => {
      const session = await bench.running();
      await session.report(3, 3, 4, 4, 4, 5);
      await session.sees(1, 2, 3, 4, 5);
    },
  ],
  [
    'long-ago',
    ['HCP-207'],
    'does not handle an old event that comes much later',
    async (bench) => {
      const session = await bench.running();
      await session.report(3, 4, 5, 6, 7, 3, 5, 8);
      await session.sees(1, 2, 3, 4, 5, 6, 7, 8);
    },
  ],
  [
    'waiting',
    ['HCP-207', 'HCP-210'],
    'handles an event once that came twice while it waited',
    async (bench) => {
      const session = await bench.running();
      await session.report(4, 5, 4, 5, 3, 6);
      await session.sees(1, 2, 3, 4, 5, 6);
    },
  ],
  [
    'whole-stream',
    ['HCP-207', 'HCP-218'],
    'handles nothing again when a whole stream is sent again',
    async (bench) => {
      const session = await bench.running();
      await session.report(3, 4, 5, 6);
      await session.sees(1, 2, 3, 4, 5, 6);
      await session.report(1, 2, 3, 4, 5, 6, 7);
      await session.sees(1, 2, 3, 4, 5, 6, 7);
    },
  ],
  [
    'other-message',
    ['HCP-207', 'HCP-218'],
    'goes by the number of an event, not by the id of its message',
    async (bench) => {
      const session = await bench.running();
      await session.report(3);
      await session.odd(3, 'progress', { stage: 'conformance', message: 'The same number, another message' });
      await session.report(4);
      await session.sees(1, 2, 3, 4);
    },
  ],
  [
    'result-twice',
    ['HCP-220'],
    'tells a result once that comes twice',
    async (bench) => {
      const session = await bench.running();
      const result = bench.callee.compose('task_completed', session.sessionId, { outputs: {} });
      await bench.callee.send(result);
      await bench.callee.send(result);
      await session.report(3);
      await session.sees(1, 2, 3);
      await session.ends('completed');
      expectThat(session.outcomes.length === 1, `It told ${session.outcomes.length} outcomes`);
    },
  ],
  [
    'second-result',
    ['HCP-220'],
    'keeps the first result when another one follows',
    async (bench) => {
      const session = await bench.running();
      await session.complete();
      await session.ends('completed');
      await session.fail('execution_error');
      await session.report(3);
      await session.sees(1, 2, 3);
      expectThat(session.outcomes.length === 1, `It told ${session.outcomes.length} outcomes`);
    },
  ],
]);
