import { expectSame, expectThat } from '../wire/expect.ts';
import { family } from './family.ts';

/** How a task ends. */
export const results = family('results', [
  [
    'completed',
    ['HCP-228', 'V-01'],
    'tells that a task completed, and handles its last events',
    async (bench) => {
      const session = await bench.running();
      await session.report(3);
      await session.finish(4);
      await session.sees(1, 2, 3, 4, 5);
      await session.ends('completed');
    },
  ],
  [
    'failed',
    ['HCP-228', 'V-02'],
    'tells that a task failed, and by which code',
    async (bench) => {
      const session = await bench.running();
      await session.fail('resource_unavailable');
      await session.move(3, 'RUNNING', 'FAILED', 'resource_unavailable');
      await session.closed(4, 'FAILED', 'resource_unavailable');
      await session.sees(1, 2, 3, 4);
      const { outcome, code } = await session.outcome();
      expectSame([outcome, code], ['failed', 'resource_unavailable'], 'What it told');
    },
  ],
  [
    'unknown-error-code',
    ['HCP-228'],
    'tells that a task failed by a code it does not know',
    async (bench) => {
      const session = await bench.running();
      await session.fail('out_of_tea');
      await session.ends('failed');
    },
  ],
  [
    'closed-first',
    ['HCP-228'],
    'takes a result that comes after the end of its session',
    async (bench) => {
      const session = await bench.running();
      await session.closed(3, 'COMPLETED', 'task_completed');
      await session.sees(1, 2, 3);
      await session.complete();
      await session.ends('completed');
    },
  ],
  [
    'behind-gap',
    ['HCP-221', 'V-126'],
    'tells a result only after the events that came before it',
    async (bench) => {
      const session = await bench.running();
      await session.report(4);
      await session.complete();
      await session.report(3);
      await session.sees(1, 2, 3, 4);
      await session.ends('completed');
      const last = session.lineOf(({ sequence }) => sequence === 4);
      const told = session.lineOf(({ outcome }) => outcome !== undefined);
      expectThat(told > last, 'It told the result before the handler had seen event 4');
    },
  ],
  [
    'missing',
    ['HCP-228', 'V-127'],
    'tells that a session was closed without a result',
    async (bench) => {
      const session = await bench.running({ graceMs: 400 });
      await session.closed(3, 'COMPLETED', 'task_completed');
      await session.ends('error');
    },
  ],
  [
    'never-closed',
    ['HCP-228', 'V-128'],
    'tells a result though the session is never closed',
    async (bench) => {
      const session = await bench.running({ graceMs: 400 });
      await session.complete();
      await session.ends('completed');
    },
  ],
  [
    'after-closed',
    ['HCP-224', 'V-129'],
    'does not handle events of a session that is closed',
    async (bench) => {
      const [closed, other] = await bench.twoRunning();
      await closed.finish(3);
      await closed.sees(1, 2, 3, 4);
      await closed.ends('completed');
      await closed.report(5, 6);
      await other.report(3, 4);
      await other.sees(1, 2, 3, 4);
      // By now what came before is decided about.
      await closed.sees(1, 2, 3, 4);
    },
  ],
  [
    'orphan-result',
    ['HCP-223'],
    'tells nothing of a result of a session it does not know',
    async (bench) => {
      const session = await bench.running();
      const stranger = bench.stranger();
      await stranger.complete();
      await session.report(3);
      await session.sees(1, 2, 3);
      expectThat(stranger.outcomes.length === 0, 'It told the result of a session nobody asked for');
    },
  ],
]);
