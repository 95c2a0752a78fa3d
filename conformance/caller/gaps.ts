import { family } from './family.ts';

const HOLD_MS = 400;

/** Events that do not come. */
export const gaps = family('gaps', [
  [
    'flushed',
    ['HCP-211', 'V-105'],
    'goes on without an event that did not come within the gap time',
    async (bench) => {
      const session = await bench.running({ gapHoldMs: HOLD_MS });
      await session.report(3, 5, 6);
      await session.sees(1, 2, 3, 5, 6);
    },
  ],
  [
    'late',
    ['HCP-206', 'V-106'],
    'does not hand an event it gave up to the handler when it comes after all',
    async (bench) => {
      const session = await bench.running({ gapHoldMs: HOLD_MS });
      await session.report(3, 5);
      await session.sees(1, 2, 3, 5);
      await session.report(4, 6);
      await session.sees(1, 2, 3, 5, 6);
    },
  ],
  [
    'several',
    ['HCP-211'],
    'goes on over several gaps',
    async (bench) => {
      const session = await bench.running({ gapHoldMs: HOLD_MS });
      await session.report(4, 6, 7, 9);
      await session.sees(1, 2, 4, 6, 7, 9);
    },
  ],
  [
    'wide',
    ['HCP-211'],
    'goes on over a wide gap',
    async (bench) => {
      const session = await bench.running({ gapHoldMs: HOLD_MS });
      await session.report(3, 250, 251);
      await session.sees(1, 2, 3, 250, 251);
    },
  ],
  [
    'half-closed',
    ['HCP-210', 'HCP-211'],
    'handles what came of a gap in time, and goes on without the rest',
    async (bench) => {
      const session = await bench.running({ gapHoldMs: HOLD_MS });
      await session.report(6, 4, 3);
      await session.sees(1, 2, 3, 4, 6);
    },
  ],
  [
    'recovery',
    ['HCP-213', 'V-109'],
    'does not wait for what is missing before a recovery',
    async (bench) => {
      const session = await bench.running(); // with a gap time that does not end
      await session.report(3);
      await session.move(6, 'PAUSED', 'RUNNING', 'recovered_from_checkpoint');
      await session.report(7);
      await session.sees(1, 2, 3, 6, 7);
    },
  ],
  [
    'at-the-end',
    ['HCP-211', 'HCP-228'],
    'ends a session whose last events but one are missing',
    async (bench) => {
      const session = await bench.running({ gapHoldMs: HOLD_MS });
      await session.complete();
      await session.closed(5, 'COMPLETED', 'task_completed');
      await session.sees(1, 2, 5);
      await session.ends('completed');
    },
  ],
]);
