import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, createCallee, type Executor } from '../../callee/index.ts';
import { type Caller, type CallerOptions, createCaller, type Session } from '../../caller/index.ts';
import type { EventMessage } from '../../schemas/types.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Store } from '../../shared/store/store.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { enter, entries, inOrder, LEDGER_TABLES } from '../support/ledger.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK } from '../support/world.ts';

/** A real callee and a real caller that keeps a ledger. */
async function createPair(stack: Stack, executor: Executor, options: Partial<CallerOptions> = {}) {
  await using resources = new AsyncDisposableStack();
  const id = randomBytes(4).toString('hex');
  const [calleeId, callerId] = [`lab-${id}`, `alpha-${id}`];
  const [there, here] = [resources.use(await stack.connect()), resources.use(await stack.connect())];
  const theirs = resources.use(await stack.openStore());
  const store: Store = resources.use(await openStore(stack.storeUrl, { tables: LEDGER_TABLES }));
  const policy = acceptKnownCallers([callerId]);
  const callee = resources.use(createCallee({ calleeId, transport: there, store: theirs, policy }));
  await callee.capability(TASK, executor).start();
  const closed = Promise.withResolvers<void>();
  const onEvent = async (event: EventMessage, tx: Parameters<typeof enter>[1]) => {
    await enter(event, tx);
    if (event.payload.event_type === 'session_closed') closed.resolve();
  };
  const caller: Caller = resources.use(createCaller({ callerId, transport: here, store, onEvent, ...options }));
  const task = { capability: 'test.task', intent: 'Go', inputs: {} };
  const kept = resources.move();
  return {
    ...{ caller, store, callerId, closed: closed.promise },
    submit: (): Promise<Session> => caller.submit(task, { calleeId }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const report: Executor = async (_, run) => {
  await run.progress({ stage: 'working', message: 'half' });
  return { outputs: {} };
};

describeOnStacks('what a caller keeps', (stack) => {
  verifies(
    'V-112',
    'an event that a handler cannot process is listed with its reason and processed later, once',
    async () => {
      let isBroken = true;
      await using pair = await createPair(stack(), report, {
        maxAttempts: 1,
        onEvent: async (event, tx) => {
          await enter(event, tx);
          if (isBroken && event.payload.event_type === 'progress') throw new Error('The disk of the ledger is full');
        },
      });
      const session = await pair.submit();
      expect(await session.result()).toMatchObject({ status: 'completed' });
      const [parked, ...others] = await pair.caller.parked();
      expect(others).toEqual([]);
      expect(parked).toMatchObject({
        sessionId: session.sessionId,
        sequence: 3,
        reason: 'The disk of the ledger is full',
        event: { payload: { event_type: 'progress' } },
      });
      if (parked === undefined) throw new Error('Nothing is parked');
      await expect(pair.caller.retryParked(parked)).rejects.toThrow('The disk of the ledger is full');
      isBroken = false;
      await pair.caller.retryParked(parked);
      expect(await pair.caller.parked()).toEqual([]);
      await expect(pair.caller.retryParked(parked)).rejects.toThrow('is not parked');
      const written = (await entries(pair.store, String(session.sessionId))).map(([sequence]) => sequence);
      expect(written.filter((sequence) => sequence === 3)).toEqual([3]);
    },
  );

  verifies(
    'HCP-226',
    'ended sessions and answered submits are counted, kept for the retention time and then forgotten',
    async () => {
      const clock = new ManualClock();
      await using pair = await createPair(stack(), report, { clock, retentionMs: 10 * 3_600_000 });
      const session = await pair.submit();
      await session.result();
      await expect
        .poll(() => pair.caller.storage())
        .toEqual({
          submissions: { open: 0, accepted: 1, rejected: 0, abandoned: 0 },
          sessions: { open: 0, ended: 1 },
          parked: { waiting: 0, failed: 0 },
        });
      expect(await entries(pair.store, String(session.sessionId))).toEqual(inOrder([1, 2, 3, 4, 5]));
      clock.advance(9 * 3_600_000);
      expect((await pair.caller.storage()).sessions.ended).toBe(1);
      await expect
        .poll(async () => {
          clock.advance(3_600_000);
          return pair.caller.storage();
        })
        .toMatchObject({ submissions: { accepted: 0 }, sessions: { ended: 0 } });
    },
  );

  verifies('HCP-204', 'a caller can ask where its session is, while it runs and when it is over', async () => {
    const { promise: proceed, resolve: tellProceed } = Promise.withResolvers<void>();
    await using pair = await createPair(stack(), async (_, run) => {
      await run.progress({ stage: 'working', message: 'half' });
      await proceed;
      return { outputs: {} };
    });
    const session = await pair.submit();
    expect(await session.status()).toMatchObject({ state: 'RUNNING', resultSent: false });
    tellProceed();
    await session.result();
    await pair.closed;
    expect(await session.status()).toMatchObject({ state: 'COMPLETED', resultSent: true });
  });
});
