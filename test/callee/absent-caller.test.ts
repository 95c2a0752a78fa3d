import { expect } from 'vitest';
import { acceptKnownCallers } from '../../callee/index.ts';
import type { Logger } from '../../shared/logger.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

describeOnStacks('a caller without a queue', (stack) => {
  verifies(['V-90', 'HCP-129'], 'stops no session; it hears everything, in order, once it has one', async () => {
    await using world = await World.create(stack());
    const beta = new SecondCaller(world);
    const { promise: done, resolve: tellDone } = Promise.withResolvers<string>();
    const { promise: kept, resolve: tellKept } = Promise.withResolvers<void>();
    const warn: Logger['warn'] = (_, message) => {
      if (message === 'Not published: kept, tried again') tellKept();
    };
    await world.serve(
      async (_, run) => {
        for (let i = 0; i < 5; i++) await run.progress({ stage: String(i), message: 'Nobody hears this yet' });
        tellDone(run.sessionId);
        return { outputs: {} };
      },
      { policy: acceptKnownCallers([beta.callerId]), logger: { ...world.logger, warn } },
    );
    await beta.submit();
    await kept;
    const sessionId = await done; // all of it durable, none of it delivered
    expect(await world.store.scan('log', 'key', { where: [sessionId] })).not.toEqual([]);
    await beta.listen();
    expect((await beta.hear(11)).map(tell)).toEqual([
      'task_accepted',
      'E1 session_created',
      'E2 PENDING→RUNNING safety_check_passed',
      ...[3, 4, 5, 6, 7].map((sequence) => `E${sequence} progress`),
      'task_completed',
      'E8 RUNNING→COMPLETED task_completed',
      'E9 closed COMPLETED task_completed',
    ]);
  });

  verifies(['V-90', 'HCP-113'], 'and one that loses it hears what came after, in order, when it is back', async () => {
    await using world = await World.create(stack());
    const beta = new SecondCaller(world);
    await beta.listen();
    const { promise: proceed, resolve: tellProceed } = Promise.withResolvers<void>();
    const { promise: spoken, resolve: tellSpoken } = Promise.withResolvers<void>();
    await world.serve(
      async (_, run) => {
        await proceed;
        await run.progress({ stage: 'one', message: 'Into the void' });
        tellSpoken();
        return { outputs: {} };
      },
      { policy: acceptKnownCallers([beta.callerId]) },
    );
    await beta.submit();
    await beta.hear(3);
    await beta.vanish();
    tellProceed();
    await spoken;
    await beta.listen();
    expect((await beta.hear(4)).map(tell)).toEqual([
      'E3 progress',
      'task_completed',
      'E4 RUNNING→COMPLETED task_completed',
      'E5 closed COMPLETED task_completed',
    ]);
  });

  verifies(['V-90', 'HCP-129'], 'holds up nobody else', async () => {
    await using world = await World.create(stack());
    const beta = new SecondCaller(world);
    const { promise: running, resolve: tellRunning } = Promise.withResolvers<void>();
    await world.serve(
      async ({ inputs }, run) => {
        await run.progress({ stage: 'one', message: 'Hello' });
        if (inputs.mute) tellRunning();
        return { outputs: {} };
      },
      { policy: acceptKnownCallers([world.callerId, beta.callerId]), closeTimeoutMs: 50 },
    );
    await beta.submit({ inputs: { mute: true } });
    await running;
    await world.submit();
    expect((await world.hearOut()).at(-1)).toBe('E5 closed COMPLETED task_completed');
  });
});
