import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, type CallerRights, type Policy } from '../../callee/index.ts';
import type { Store } from '../../shared/store/store.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

/** An executor that counts its runs. */
function counted() {
  const runs: unknown[] = [];
  return {
    runs,
    executor: async ({ inputs }: { inputs: Record<string, unknown> }) => {
      runs.push(inputs.name);
      return { outputs: {} };
    },
  };
}

/** Submits `messageId` again and expects the very bytes of the first answer, under the same properties. */
async function answersAgain(world: World, messageId: string, payload: object = {}): Promise<void> {
  const [first] = world.received;
  const before = world.received.length;
  await world.submit(payload, messageId);
  await world.next();
  const again = world.received[before];
  expect(again && Buffer.from(again.body).toString()).toBe(first && Buffer.from(first.body).toString());
  expect(again?.properties).toEqual(first?.properties);
  expect(again?.route).toEqual(first?.route);
}

describeOnStacks('repeated submits', (stack) => {
  verifies(['V-54', 'HCP-102', 'HCP-103'], 'a submit sent twice is one session, answered twice alike', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counted();
    await world.serve(executor);
    const messageId = await world.submit();
    await world.hearOut();
    await answersAgain(world, messageId);
    await world.echo();
    expect(runs).toHaveLength(1);
  });

  verifies(['V-54', 'HCP-102'], 'a burst of the same submit is one session', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counted();
    await world.serve(executor);
    const messageId = randomUUID();
    await Promise.all(Array.from({ length: 8 }, () => world.submit({}, messageId)));
    await world.hearOut();
    const echo = await world.submit({ capability: 'test.echo' });
    for (let heard = await world.next(); ; heard = await world.next()) {
      if (heard.type === 'task_rejected' && heard.payload.in_reply_to === echo) break;
      expect(tell(heard)).toBe('task_accepted');
    }
    const bodies = world.received.map(({ body }) => Buffer.from(body).toString());
    const accepted = new Set(bodies.filter((text) => text.includes('"type":"task_accepted"')));
    expect([runs.length, accepted.size]).toEqual([1, 1]);
  });

  verifies(['V-55', 'HCP-107'], 'a submit repeated before the decision gets one answer, later', async () => {
    await using world = await World.create(stack());
    const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>();
    const { promise: decision, resolve: decide } = Promise.withResolvers<CallerRights | undefined>();
    const callers: Policy['callers'] = ({ task }) => {
      if (task.capability !== 'test.task') return undefined;
      tellAsked();
      return decision;
    };
    const { executor, runs } = counted();
    await world.serve(executor, { policy: { callers } });
    const messageId = await world.submit();
    await asked;
    await world.submit({}, messageId);
    await world.submit({}, messageId);
    await world.echo();
    expect(world.logged(/not decided yet/)).toHaveLength(2);
    decide({});
    expect((await world.hearOut()).filter((told) => told === 'task_accepted')).toHaveLength(1);
    await world.echo();
    expect(runs).toHaveLength(1);
  });

  verifies(
    ['V-56', 'HCP-102', 'HCP-103'],
    'a submit repeated after the end, and after a restart, starts nothing',
    async () => {
      await using world = await World.create(stack());
      const { executor, runs } = counted();
      const first = await world.serve(executor);
      const messageId = await world.submit();
      expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
      await answersAgain(world, messageId);
      await first.close();
      await world.serve(executor);
      await answersAgain(world, messageId);
      await world.echo();
      expect(runs).toHaveLength(1);
    },
  );

  verifies('V-56', 'a submit sent again while nobody is there is answered by the next callee', async () => {
    await using world = await World.create(stack());
    const { executor, runs } = counted();
    const first = await world.serve(executor);
    const messageId = await world.submit();
    await world.hearOut();
    await first.close();
    await world.submit({}, messageId);
    await world.serve(executor);
    expect(tell(await world.next())).toBe('task_accepted');
    await world.echo();
    expect(runs).toHaveLength(1);
  });

  verifies(
    ['V-57', 'HCP-103'],
    'a rejection is repeated as it was, also after a restart with another mind',
    async () => {
      await using world = await World.create(stack());
      const { executor, runs } = counted();
      const first = await world.serve(executor, { policy: acceptKnownCallers([]) });
      const messageId = await world.submit();
      expect(tell(await world.next())).toBe('task_rejected unauthorized');
      await answersAgain(world, messageId);
      await first.close();
      await world.serve(executor); // this one would accept it
      await answersAgain(world, messageId);
      await world.echo();
      expect(runs).toHaveLength(0);
    },
  );

  verifies(
    'V-58',
    'another task under a used message id gets the answer of the first, and an error in the log',
    async () => {
      await using world = await World.create(stack());
      const { executor, runs } = counted();
      await world.serve(executor);
      const messageId = await world.submit({ inputs: { name: 'first' } });
      await world.hearOut();
      await answersAgain(world, messageId, { inputs: { name: 'second' } });
      await world.echo();
      expect(runs).toEqual(['first']);
      expect(world.logged(/"level":"error".*used again for another task/)).toHaveLength(1);
    },
  );

  verifies('V-59', 'the same message id of another caller is another submit', async () => {
    await using world = await World.create(stack());
    const beta = new SecondCaller(world);
    await beta.listen();
    const { executor, runs } = counted();
    await world.serve(executor, { policy: acceptKnownCallers([world.callerId, beta.callerId]) });
    const messageId = await world.submit({ inputs: { name: 'alpha' } });
    const { sessionId } = await world.started();
    await beta.submit({ inputs: { name: 'beta' } }, messageId);
    const [accepted] = await beta.hear(6);
    expect(accepted).toMatchObject({ type: 'task_accepted', payload: { in_reply_to: messageId } });
    expect(accepted?.session_id).not.toBe(sessionId);
    expect(runs).toEqual(['alpha', 'beta']);
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies('HCP-104', 'the answer is still known when the session has been over for days', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { executor, runs } = counted();
    await world.serve(executor, { clock, retention: 'P7D' });
    const messageId = await world.submit();
    await world.hearOut();
    clock.advance(6 * 86_400_000 + 23 * 3_600_000);
    await answersAgain(world, messageId);
    expect(runs).toHaveLength(1);
  });

  verifies('HCP-101', 'a command is acked when its answer is stored, not before and not after the work', async () => {
    await using world = await World.create(stack());
    const steps: string[] = [];
    const { promise: acked, resolve: tellAcked } = Promise.withResolvers<void>();
    const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
    await using plain = await stack().openStore();
    const store = tellingCommits(plain, (tables) => {
      if (tables.includes('answers')) steps.push(`stored ${tables}`);
    });
    const transport = tellingAcks(await world.connect(), () => {
      steps.push('acked');
      tellAcked();
    });
    const callers = () => {
      steps.push('judged');
      return {};
    };
    await world.serve(
      async () => {
        await finish;
        steps.push('worked');
        return { outputs: {} };
      },
      { store, transport, policy: { callers } },
    );
    await world.submit();
    await acked;
    tellFinish();
    await world.hearOut();
    const decided = 'stored log,sessions,answers,audit,audit_heads';
    expect(steps).toEqual(['stored answers,sessions', 'judged', decided, 'acked', 'worked']);
  });
});

/** The same store; tells which tables a commit that succeeded wrote to. */
function tellingCommits(store: Store, tell: (tables: string) => void): Store {
  const commit: Store['commit'] = async (writes) => {
    const answer = await store.commit(writes);
    const tables = writes.map((write) => Object.values(write)[0]);
    if (answer === 'committed') tell([...new Set(tables)].join());
    return answer;
  };
  return overriding(store, { commit });
}

/** The same transport; tells of each ack of a command. */
function tellingAcks(transport: Transport, tell: () => void): Transport {
  const consume: Transport['consume'] = (queue, handler, options) =>
    transport.consume(
      queue,
      (delivery) =>
        handler({
          ...delivery,
          ack: () => {
            tell();
            delivery.ack();
          },
          retry: () => delivery.retry(),
          reject: () => delivery.reject(),
        }),
      options,
    );
  return overriding(transport, { consume });
}

/** The same object with some methods replaced; the others keep their private fields. */
function overriding<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get(object, name) {
      const value = Reflect.get(name in methods ? methods : object, name);
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
}
