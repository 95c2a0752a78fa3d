import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { Slots } from '../../../callee/gate/capacity.ts';
import type { Executor } from '../../../callee/index.ts';
import type { Row } from '../../../shared/store/store.ts';
import { describeOnStores } from '../../support/audit-room.ts';
import { untilStopped } from '../../support/executors.ts';
import { seededRandom } from '../../support/random.ts';
import { describeOnStacks, type Stack } from '../../support/stacks.ts';
import { verifies } from '../../support/verifies.ts';
import { type Heard, TASK, tell, World } from '../../support/world.ts';

const limitedTo = (concurrent_limit: number) => ({ constraints: { concurrent_limit } });

/** The places that are taken. */
function places(world: World): Promise<readonly Row[]> {
  return world.store.scan('slots', 'key', { where: [world.calleeId] });
}

/** Ends as its inputs say, once it is told to. */
function ending(go: Promise<void>): Executor {
  return async (task, run) => {
    if (task.inputs.how === 'abort') return untilStopped(task, run);
    await go;
    if (task.inputs.how === 'fail') throw new Error('Too hot');
    return { outputs: {} };
  };
}

describeOnStores('the places of a capability', (open) => {
  const declaration = { ...TASK, ...limitedTo(3) };

  verifies('HCP-131', 'are never more than there are, however many want one at once', async () => {
    await using store = await open();
    const calleeId = `lab-${crypto.randomUUID().slice(0, 8)}`;
    const slots = [new Slots(store, calleeId), new Slots(store, calleeId)];
    const wanting = Array.from({ length: 20 }, (_, i) => slots[i % 2]?.take(declaration, `s-${i}`));
    const given = await Promise.all(wanting);
    expect(given.filter((slot) => slot !== 'full').toSorted()).toEqual([0, 1, 2]);
    expect(await slots[0]?.isFull(declaration, 's-new')).toBe(true);
  });

  verifies('HCP-131', 'are found again by whoever has one, and free when it is given back', async () => {
    await using store = await open();
    const slots = new Slots(store, `lab-${crypto.randomUUID().slice(0, 8)}`);
    for (const id of ['a', 'b', 'c']) await slots.take(declaration, id);
    expect([await slots.take(declaration, 'b'), await slots.isFull(declaration, 'b')]).toEqual([1, false]);
    expect([await slots.take(declaration, 'd'), await slots.isFull(declaration, 'd')]).toEqual(['full', true]);
    await store.commit(await slots.release('b'));
    expect(await slots.take(declaration, 'd')).toBe(1);
    expect(await slots.release('nobody')).toEqual([]);
  });

  verifies('HCP-131', 'that are fewer after a restart are not exceeded either', async () => {
    await using store = await open();
    const slots = new Slots(store, `lab-${crypto.randomUUID().slice(0, 8)}`);
    for (const id of ['a', 'b', 'c']) await slots.take(declaration, id);
    await store.commit(await slots.release('a'));
    expect(await slots.take({ ...TASK, ...limitedTo(2) }, 'd')).toBe('full');
  });

  it('are nobody’s business where there is no limit', async () => {
    await using store = await open();
    expect(await new Slots(store, 'lab').take(TASK, 'a')).toBe('unlimited');
  });
});

describeOnStacks('concurrent_limit', (stack) => {
  for (const how of ['complete', 'fail', 'abort'] as const) {
    verifies(['V-52', 'HCP-131'], `a full capability refuses until one of its tasks ends: ${how}`, async () => {
      await using world = await World.create(stack());
      const { promise: go, resolve: tellGo } = Promise.withResolvers<void>();
      await world.serve(ending(go), {}, limitedTo(1));
      await world.submit({ inputs: { how } });
      const { sessionId } = await world.started();
      await world.submit();
      expect(await world.next()).toMatchObject({
        type: 'task_rejected',
        payload: {
          reason_code: 'resource_unavailable',
          suggestion: 'Submit again when one of them has ended',
          assessed_risk_level: 'R1',
        },
      });
      expect(await places(world)).toMatchObject([{ slot: 0, session_id: sessionId }]);
      if (how === 'abort') await world.abort(sessionId);
      tellGo();
      await world.hearOut();
      expect(await places(world)).toEqual([]);
      await world.submit();
      expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    });
  }

  verifies(['V-52', 'HCP-131'], 'all instances of a callee share one limit', async () => {
    await using world = await World.create(stack());
    const { promise: go, resolve: tellGo } = Promise.withResolvers<void>();
    const first = await world.serve(ending(go), {}, limitedTo(1));
    await world.submit();
    await world.started();
    await world.serve(ending(go), {}, limitedTo(1));
    // Whichever of the two takes them.
    const answers: string[] = [];
    for (let i = 0; i < 6; i++) {
      await world.submit();
      answers.push(tell(await world.next()));
    }
    expect(new Set(answers)).toEqual(new Set(['task_rejected resource_unavailable']));
    tellGo();
    await world.hearOut();
    await first.close();
    await world.submit();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies(['V-52', 'HCP-131'], 'a session that is continued after a restart keeps its place', async () => {
    await using world = await World.create(stack());
    const first = await world.serve(
      async (task, run) => {
        await run.checkpoint({ done: 1 }, { description: 'half' });
        return untilStopped(task, run);
      },
      {},
      limitedTo(1),
    );
    await world.submit();
    expect((await world.hear(4)).map(tell).at(-1)).toBe('E3 checkpoint_created');
    await first.close();
    const { promise: go, resolve: tellGo } = Promise.withResolvers<void>();
    await world.serve(ending(go), {}, limitedTo(1));
    expect((await world.hearFresh(2)).map(tell).at(-1)).toBe('E5 PAUSED→RUNNING recovered_from_checkpoint');
    await world.submit();
    expect(tell(await world.next())).toBe('task_rejected resource_unavailable');
    tellGo();
    await world.hearOut();
    expect(await places(world)).toEqual([]);
  });

  verifies(
    ['V-52', 'HCP-131', 'V-17'],
    'the place of a killed instance is free when its session has ended, and not before',
    async () => {
      await using world = await World.create(stack());
      await using process = await startLimited(stack(), world);
      await world.submit();
      const { sessionId } = await world.started();
      await process.said('working');
      const { promise: go, resolve: tellGo } = Promise.withResolvers<void>();
      await world.serve(ending(go), { leaseMs: 3000 }, limitedTo(1));
      await process.kill();
      // Nobody knows yet that it is gone.
      await world.submit();
      let heard = await world.hearFresh(1);
      expect(heard.map(tell)).toEqual(['task_rejected resource_unavailable']);
      expect(await places(world)).toMatchObject([{ session_id: sessionId }]);
      heard = await world.hearFresh(3);
      expect(heard.map(tell)).toEqual([
        'task_failed internal_error',
        'E3 RUNNING→FAILED callee_restarted',
        'E4 closed FAILED callee_restarted',
      ]);
      expect(await places(world)).toEqual([]);
      await world.submit();
      expect(tell(await world.next())).toBe('task_accepted');
      tellGo();
      expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
    },
    60_000,
  );

  const TASKS = 30;
  verifies(
    ['V-52', 'HCP-131'],
    `${TASKS} tasks of all fates over two instances: never more than three at once, and no place is lost`,
    async () => {
      const random = seededRandom('HCP_SEED');
      await using world = await World.create(stack());
      let running = 0;
      let most = 0;
      const ran: string[] = [];
      const executor: Executor = async (task, run) => {
        ran.push(run.sessionId);
        most = Math.max(most, ++running);
        try {
          const { how, steps } = task.inputs as { how: string; steps: number };
          for (let step = 0; step < steps; step++) await run.progress({ stage: 'work', message: `Step ${step}` });
          if (how === 'abort') return await untilStopped(task, run);
          if (how === 'fail') throw new Error('Too hot');
          return { outputs: {} };
        } finally {
          running--;
        }
      };
      for (let i = 0; i < 2; i++) await world.serve(executor, { prefetch: 3 }, limitedTo(3));
      const aborting = new Set<string>();
      let [open, accepted, refused] = [0, 0, 0];
      const submit = async () => {
        open++;
        const how = ['complete', 'fail', 'abort'][Math.floor(random() * 3)] ?? '';
        const messageId = await world.submit({ inputs: { how, steps: 1 + Math.floor(random() * 6) } });
        if (how === 'abort') aborting.add(messageId);
      };
      for (let i = 0; i < 8; i++) await submit();
      const next = async () => {
        open--;
        if (accepted < TASKS) await submit();
      };
      const react = async (message: Heard) => {
        if (message.type === 'task_accepted') {
          accepted++;
          if (aborting.has(message.payload.in_reply_to ?? '')) await world.abort(message.session_id);
        } else if (message.type === 'task_rejected') {
          expect(message.payload.reason_code).toBe('resource_unavailable');
          refused++;
          await next();
        } else if (message.type === 'event' && message.payload.event_type === 'session_closed') {
          await next();
        }
      };
      while (open > 0) await react(await world.next());
      const told = `seed ${random.seed}: ${accepted} accepted, ${refused} refused`;
      expect(most, told).toBeLessThanOrEqual(3);
      expect(new Set(ran).size, told).toBe(ran.length);
      expect(accepted, told).toBeGreaterThanOrEqual(TASKS);
      expect([running, await places(world)], told).toEqual([0, []]);
      expect(refused, told).toBeGreaterThan(0);
    },
    120_000,
  );
});

/** A callee in a process that can be killed. */
async function startLimited({ transportUrl, storeUrl }: Stack, { calleeId, callerId }: World) {
  const script = fileURLToPath(new URL('limited-callee.ts', import.meta.url));
  const options = JSON.stringify({ transportUrl, storeUrl, calleeId, callerId, leaseMs: 3000 });
  const child = spawn(process.execPath, [script, options], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const lines: string[] = [];
  let wake = Promise.withResolvers<void>();
  createInterface(child.stdout).on('line', (line) => {
    lines.push(line);
    wake.resolve();
    wake = Promise.withResolvers();
  });
  const said = async (word: string) => {
    while (!lines.includes(word))
      await Promise.race([wake.promise, exited.then(() => Promise.reject(new Error('It ended')))]);
  };
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  await said('ready');
  return { said, kill, [Symbol.asyncDispose]: kill };
}
