import { family } from './family.ts';
import { upTo } from './numbers.ts';

/** One session's events, one after the other. */
export const order = family('order', [
  [
    'in-order',
    ['HCP-208', 'HCP-209', 'V-101'],
    'handles events in the order of their numbers',
    async (bench) => {
      const session = await bench.running();
      await session.report(...upTo(40, 3));
      await session.sees(...upTo(40));
    },
  ],
  [
    'reordered',
    ['HCP-210', 'V-104'],
    'puts events that overtook another one back into order',
    async (bench) => {
      const session = await bench.running();
      await session.report(3, 5, 6, 4, 7);
      await session.sees(1, 2, 3, 4, 5, 6, 7);
    },
  ],
  [
    'many-reordered',
    ['HCP-209', 'HCP-210'],
    'keeps the order of a stream in which neighbours are mixed up all along',
    async (bench) => {
      const session = await bench.running();
      for (let first = 3; first < 63; first += 3) await session.report(first + 2, first, first + 1);
      await session.sees(...upTo(62));
    },
  ],
  [
    'interleaved',
    ['HCP-209', 'V-12'],
    'keeps the order of each of two sessions in one queue',
    async (bench) => {
      const [one, other] = await bench.twoRunning();
      for (const sequence of upTo(12, 3)) for (const session of [one, other]) await session.report(sequence);
      for (const session of [one, other]) await session.sees(...upTo(12));
    },
  ],
  [
    'independent',
    ['HCP-214'],
    'lets no session wait for what another one misses',
    async (bench) => {
      const [waiting, other] = await bench.twoRunning();
      await waiting.report(4);
      await other.report(3, 4, 5);
      await other.sees(1, 2, 3, 4, 5);
      await waiting.report(3);
      await waiting.sees(1, 2, 3, 4);
    },
  ],
  [
    'first-zero',
    ['V-110'],
    'takes 0 for a first number',
    async (bench) => {
      const session = await bench.accepted();
      await session.report(0, 1, 2);
      await session.sees(0, 1, 2);
    },
  ],
  [
    'first-one',
    ['V-110'],
    'takes 1 for a first number',
    async (bench) => {
      const session = await bench.accepted();
      await session.report(1, 2);
      await session.sees(1, 2);
    },
  ],
  [
    'first-three',
    ['V-110', 'HCP-211'],
    'goes on after the gap time when a stream begins with 3',
    async (bench) => {
      const session = await bench.accepted({ gapHoldMs: 300 });
      await session.report(3, 4);
      await session.sees(3, 4);
    },
  ],
  [
    'first-overtaken',
    ['HCP-210', 'V-110'],
    'waits for the first event when the second one overtook it',
    async (bench) => {
      const session = await bench.accepted();
      await session.report(2, 1, 3);
      await session.sees(1, 2, 3);
    },
  ],
]);
