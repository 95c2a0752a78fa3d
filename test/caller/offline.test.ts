import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, createCallee, type Executor } from '../../callee/index.ts';
import { createCaller } from '../../caller/index.ts';
import { CallerRoom, DO_IT } from '../support/caller-room.ts';
import { enter, entries, inOrder } from '../support/ledger.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK } from '../support/world.ts';

/** A real callee, and what it needs. */
async function serve(stack: Stack, callerId: string, calleeId: string, executor: Executor): Promise<AsyncDisposable> {
  const resources = new AsyncDisposableStack();
  const transport = resources.use(await stack.connect());
  const store = resources.use(await stack.openStore());
  const policy = acceptKnownCallers([callerId]);
  const callee = resources.use(createCallee({ calleeId, transport, store, policy, closeTimeoutMs: 2000 }));
  callee.capability(TASK, executor);
  await callee.start();
  return resources;
}

/** Each once, one after the other. */
const upTo = (last: number) => inOrder(Array.from({ length: last }, (_, at) => at + 1));

describeOnStacks('a caller and a real callee', (stack) => {
  verifies(
    ['V-22', 'HCP-203', 'HCP-215'],
    'a caller that is away for the whole task hears all of it later',
    async () => {
      await using room = await CallerRoom.create(stack());
      const calleeId = `real-${randomBytes(4).toString('hex')}`;
      const { promise: proceed, resolve: tellProceed } = Promise.withResolvers<void>();
      const { promise: finished, resolve: tellFinished } = Promise.withResolvers<void>();
      const { promise: begun, resolve: tellBegun } = Promise.withResolvers<void>();
      await using _callee = await serve(stack(), room.callerId, calleeId, async (_, run) => {
        tellBegun();
        await proceed;
        for (let round = 1; round <= 20; round++) await run.progress({ stage: 'away', message: String(round) });
        tellFinished();
        return { outputs: { rounds: 20 } };
      });
      const first = await room.caller({ onEvent: enter });
      const session = await first.submit(DO_IT, { calleeId });
      const sessionId = session.sessionId as string; // it was accepted
      await begun;
      await first.close();
      tellProceed();
      await finished;

      const second = await room.caller({ onEvent: enter });
      const again = await second.session(sessionId);
      expect(await again?.result()).toMatchObject({ status: 'completed', outputs: { rounds: 20 } });
      const row = await room.ended(sessionId);
      expect(row).toMatchObject({ last_processed_sequence: 24, final_state: 'COMPLETED' });
      expect(await entries(room.store, sessionId)).toEqual(upTo(24));
    },
  );

  verifies(['V-11', 'V-12', 'HCP-209'], 'sessions interleaved in one queue are each handled in order', async () => {
    await using room = await CallerRoom.create(stack());
    const calleeId = `real-${randomBytes(4).toString('hex')}`;
    await using _callee = await serve(stack(), room.callerId, calleeId, async ({ inputs }, run) => {
      const rounds = Number(inputs.rounds);
      for (let round = 1; round <= rounds; round++) await run.progress({ stage: 'together', message: String(round) });
      return { outputs: { rounds } };
    });
    await using transport = await stack().connect();
    await using caller = createCaller({ callerId: room.callerId, transport, store: room.store, onEvent: enter });
    const sizes = [5, 17, 30];
    const sessions = await Promise.all(
      sizes.map((rounds) => caller.submit({ ...DO_IT, inputs: { rounds } }, { calleeId })),
    );
    for (const [index, session] of sessions.entries()) {
      const rounds = sizes[index] ?? 0;
      expect(await session.result()).toMatchObject({ status: 'completed', outputs: { rounds } });
      const sessionId = session.sessionId as string; // it was accepted
      const row = await room.ended(sessionId);
      expect(await entries(room.store, sessionId)).toEqual(upTo(rounds + 4));
      expect(row).toMatchObject({ last_processed_sequence: rounds + 4 });
    }
  });
});
