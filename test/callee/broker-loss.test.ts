import { expect } from 'vitest';
import { acceptKnownCallers } from '../../callee/index.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import { eventQueue } from '../../shared/transport/topology.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

describeOnStacks('a callee whose broker or caller is away', (stack) => {
  verifies(
    ['V-21', 'HCP-113', 'HCP-114', 'HCP-129'],
    'works on while the broker is away, and everything arrives afterwards without a hole',
    async () => {
      await using world = await World.create(stack());
      const { promise: away, resolve: tellAway } = Promise.withResolvers<void>();
      const { promise: done, resolve: tellDone } = Promise.withResolvers<void>();
      await world.serve(async (_, run) => {
        for (let i = 1; i <= 5; i++) await run.progress({ stage: 'before', message: String(i) });
        await away;
        for (let i = 1; i <= 50; i++) await run.progress({ stage: 'without', message: String(i) });
        await run.checkpoint({ i: 50 }, { description: 'without a broker' });
        tellDone();
        return { outputs: {} };
      });
      await world.submit();
      await world.hear(8);
      const heal = await stack().stopBroker();
      tellAway();
      await done; // all of it is durable, and nothing of it published
      await heal();
      const told = (await world.hearFresh(54)).map(tell);
      expect(told).toEqual([
        ...Array.from({ length: 50 }, (_, index) => `E${index + 8} progress`),
        'E58 checkpoint_created',
        'task_completed',
        'E59 RUNNING→COMPLETED task_completed',
        'E60 closed COMPLETED task_completed',
      ]);
    },
    120_000,
  );

  verifies(['V-22', 'HCP-129'], 'does not notice that its caller is away: everything waits in its queue', async () => {
    await using world = await World.create(stack());
    const absent = `${world.callerId}-absent`;
    await world.transport.declare(eventQueue(absent));
    const { promise: done, resolve: tellDone } = Promise.withResolvers<void>();
    await world.serve(
      async (_, run) => {
        for (let i = 1; i <= 10; i++) await run.progress({ stage: 'alone', message: String(i) });
        tellDone();
        return { outputs: {} };
      },
      { policy: acceptKnownCallers([absent]) },
    );
    const payload = { capability: 'test.task', caller_id: absent, intent: 'Do it', inputs: {} };
    const submit = buildMessage({ type: 'task_submit', sessionId: null, senderId: absent, payload });
    await world.send(submit.body, submit.properties);
    await done;
    const arrived: string[] = [];
    const { promise: closed, resolve: tellClosed } = Promise.withResolvers<void>();
    const late = await world.connect();
    await late.consume(eventQueue(absent), (delivery) => {
      delivery.ack();
      arrived.push(tell(JSON.parse(Buffer.from(delivery.body).toString())));
      if (arrived.at(-1)?.includes('closed')) tellClosed();
    });
    await closed;
    expect(arrived.slice(3)).toEqual([
      ...Array.from({ length: 10 }, (_, index) => `E${index + 3} progress`),
      'task_completed',
      'E13 RUNNING→COMPLETED task_completed',
      'E14 closed COMPLETED task_completed',
    ]);
  });
});
