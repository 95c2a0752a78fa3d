import { expect } from 'vitest';
import { acceptKnownCallers, type Policy } from '../../callee/index.ts';
import type { DataClassification, TaskSubmitPayload } from '../../schemas/types.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { untilStopped } from '../support/executors.ts';
import { audited, serveFurnace } from '../support/furnace.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const CLASSES: readonly DataClassification[] = ['T1', 'T2', 'T3', 'T4'];

/** Anything, for the one caller there is; nothing leaves this machine. */
function anything(world: World): Policy {
  return { ...acceptKnownCallers({ [world.callerId]: { dataLimit: 'T4' } }), identity: 'claim' };
}

const about = (data_classification: DataClassification): Partial<TaskSubmitPayload> => ({
  constraints: { data_classification },
});

function accessLines(world: World, sessionId: string): string[] {
  return world.logged(/The data of a task is looked at/).filter((line) => line.includes(sessionId));
}

async function accesses(world: World, sessionId: string): Promise<unknown[]> {
  const records = await audited(world.store, world.calleeId, sessionId);
  return records.filter(({ kind }) => kind === 'data_access').map(({ details }) => details);
}

/** The same transport, as if its link could be listened to. */
function inTheClear(transport: Transport): Transport {
  return new Proxy(transport, {
    get(target, name) {
      if (name === 'link') return 'plain';
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describeOnStacks('classified data', (stack) => {
  verifies('HCP-313', 'is logged when it is looked at from T2 on, and goes on record as T4', async () => {
    await using world = await World.create(stack());
    await serveFurnace(world, async () => ({ outputs: {} }), { policy: anything(world) });
    const seen: unknown[] = [];
    for (const data of CLASSES) {
      await world.submit(about(data));
      const { sessionId } = await world.started();
      await world.hearOut();
      const lines = accessLines(world, sessionId);
      for (const line of lines) {
        expect(JSON.parse(line)).toMatchObject({ caller_id: world.callerId, data_classification: data });
      }
      seen.push([data, lines.length, (await accesses(world, sessionId)).length]);
    }
    expect(seen).toEqual([
      ['T1', 0, 0],
      ['T2', 1, 0],
      ['T3', 1, 0],
      ['T4', 1, 1],
    ]);
  });

  verifies(['HCP-313', 'D-28'], 'of no named class counts as T2', async () => {
    await using world = await World.create(stack());
    await serveFurnace(world, async () => ({ outputs: {} }));
    await world.submit();
    const [accepted] = await world.hear(3);
    expect(accepted).toMatchObject({ payload: { data_classification: 'T2' } });
    expect(accessLines(world, String(accepted?.session_id))).toHaveLength(1);
  });

  for (const rest of ['running', 'paused'] as const) {
    verifies('HCP-313', `that is T4 is on record again when a ${rest} task goes on after a restart`, async () => {
      await using world = await World.create(stack());
      const policy = anything(world);
      const first = await serveFurnace(
        world,
        async (task, run) => {
          await run.checkpoint({}, { description: 'begun' });
          if (rest === 'paused') await run.pause();
          return untilStopped(task, run);
        },
        { policy },
      );
      await world.submit({ ...about('T4'), inputs: { secret: 'of state' } });
      const { sessionId } = await world.started();
      await world.hear(rest === 'paused' ? 2 : 1);
      await first.close();
      await serveFurnace(
        world,
        async (_, run) => {
          await run.resume();
          return { outputs: {} };
        },
        { policy },
      );
      expect((await world.hearOut()).at(-1)).toMatch(/closed COMPLETED/);
      const details = { caller_id: world.callerId, data_classification: 'T4', inputs_sha256: expect.any(String) };
      expect(await accesses(world, sessionId)).toMatchObject([
        { ...details, when: 'start' },
        { ...details, when: 'restart' },
      ]);
      expect(accessLines(world, sessionId)).toHaveLength(2);
      expect(JSON.stringify(await audited(world.store, world.calleeId, sessionId))).not.toContain('of state');
    });
  }

  verifies('HCP-313', 'is not looked at, and not on record as looked at, when the task is rejected', async () => {
    await using world = await World.create(stack());
    await serveFurnace(world, async () => ({ outputs: {} }));
    const messageId = await world.submit(about('T4'));
    expect(tell(await world.next())).toBe('task_rejected forbidden');
    const answer = await world.store.get('answers', [world.calleeId, world.callerId, messageId]);
    expect(await accesses(world, String(answer?.session_id))).toEqual([]);
    expect(world.logged(/looked at/)).toEqual([]);
  });

  verifies('HCP-313', 'from T3 on is refused over a link that others could listen to', async () => {
    await using world = await World.create(stack());
    const transport = inTheClear(await world.connect());
    await serveFurnace(world, async () => ({ outputs: {} }), { policy: anything(world), transport });
    for (const data of CLASSES) {
      await world.submit(about(data));
      const told = tell(await world.next());
      expect(told).toBe(data >= 'T3' ? 'task_rejected forbidden' : 'task_accepted');
      if (told === 'task_accepted') await world.hearOut();
    }
  });
});
