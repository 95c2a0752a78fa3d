import { expectSame, expectThat } from '../wire/expect.ts';
import type { CallerBench } from './bench.ts';
import { family } from './family.ts';
import { upTo } from './numbers.ts';
import type { PlayedSession } from './played-session.ts';

/** What a caller is worth that was killed in the middle. */
export const restarts = family('restarts', [
  [
    'none-lost',
    ['HCP-215', 'V-22'],
    'handles after a restart what was told while it was away',
    async (bench) => {
      const session = await bench.running();
      await session.sees(1, 2);
      await bench.kill();
      await session.report(3, 4, 5);
      bench.revive();
      await session.report(6);
      await handles(bench, session, 6);
      isOnceEach(session, 6, [1, 2]);
    },
  ],
  [
    'none-twice',
    ['HCP-206', 'HCP-215', 'V-103'],
    'does not handle again after a restart what it had finished before',
    async (bench) => {
      const session = await bench.running();
      for (const sequence of [3, 4, 5]) {
        await session.report(sequence);
        await session.sees(...upTo(sequence));
      }
      await bench.restart();
      await session.report(1, 2, 3, 4, 5, 6);
      await handles(bench, session, 6);
      // It had begun with 5 when it had finished 4: of 5 itself nobody can tell.
      isOnceEach(session, 6, [5]);
    },
  ],
  [
    'in-hand',
    ['HCP-004', 'HCP-208', 'V-102'],
    'gets an event again that it had in hand when it was killed',
    async (bench) => {
      const session = await bench.running();
      await session.sees(1, 2);
      await session.ask(3, 'hold');
      await session.report(4, 5);
      await bench.until(
        () => 'event 3 to be held',
        () => bench.report.lines.find(({ holding }) => holding === true),
      );
      await bench.restart();
      await session.report(6);
      await handles(bench, session, 6);
      isOnceEach(session, 6, [1, 2]);
    },
  ],
  [
    'waiting',
    ['HCP-210', 'HCP-215'],
    'still has after a restart what waited for a missing event',
    async (bench) => {
      const [session, other] = await bench.twoRunning();
      await session.sees(1, 2);
      await session.report(4, 5);
      await other.report(3);
      await other.sees(1, 2, 3); // so it has had 4 and 5 in hand
      await bench.restart();
      await session.report(3, 6);
      await handles(bench, session, 6);
      isOnceEach(session, 6, [1, 2]);
    },
  ],
  [
    'three-times',
    ['HCP-206', 'HCP-215', 'HCP-216'],
    'loses nothing and changes no order in four lives',
    async (bench) => {
      const session = await bench.running();
      const inHand: number[] = [];
      for (const first of [3, 10, 17]) {
        const before = session.handled.length;
        await session.report(...upTo(first + 6, first));
        await handles(bench, session, first);
        await bench.kill();
        // Of what a life has handled nobody can tell from outside how much it had finished.
        inHand.push(...session.handled.slice(before));
        bench.revive();
      }
      await session.report(24);
      await handles(bench, session, 24);
      isOnceEach(session, 24, inHand);
    },
  ],
  [
    'closed',
    ['HCP-224', 'HCP-226'],
    'does not begin a session again after a restart that was closed before',
    async (bench) => {
      const [closed, other] = await bench.twoRunning();
      await closed.sees(1, 2);
      await closed.finish(3);
      await closed.sees(1, 2, 3, 4);
      await closed.ends('completed');
      await bench.restart();
      await closed.report(1, 2);
      await other.report(3);
      await handles(bench, other, 3);
      isOnceEach(closed, 4, [3, 4]);
    },
  ],
  [
    'result',
    ['HCP-215', 'HCP-228'],
    'handles the end of a session it began in an earlier life',
    async (bench) => {
      const session = await bench.running();
      await session.sees(1, 2);
      await bench.restart();
      await session.report(3);
      await session.finish(4);
      await handles(bench, session, 5);
      isOnceEach(session, 5, [1, 2]);
    },
  ],
]);

async function handles(bench: CallerBench, session: PlayedSession, sequence: number): Promise<void> {
  const what = () => `event ${sequence} to be handled; so far: ${session.handled.join(', ')}`;
  await bench.until(what, () => session.handled.includes(sequence) || undefined);
}

/**
 * Every event up to the last was handled, in order, once; those that were in hand at a kill perhaps once more, since an
 * effect in a file and a cursor cannot be one step.
 */
function isOnceEach(session: PlayedSession, last: number, inHand: readonly number[]): void {
  const { handled } = session;
  expectSame([...new Set(handled)], upTo(last), 'What it handled');
  for (const sequence of upTo(last)) {
    const times = handled.filter((seen) => seen === sequence).length;
    expectThat(times === 1 || inHand.includes(sequence), `It handled event ${sequence} ${times} times`);
  }
}
