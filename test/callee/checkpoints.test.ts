import { expect } from 'vitest';
import type { Executor } from '../../callee/index.ts';
import type { Row } from '../../shared/store/store.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { World } from '../support/world.ts';

async function stored(world: World, sessionId: string): Promise<readonly Row[]> {
  const rows = await world.store.scan('checkpoints', 'key', { where: [sessionId] });
  return rows.toSorted((a, b) => Number(a.sequence) - Number(b.sequence));
}

const descriptions = (rows: readonly Row[]) => rows.map(({ description }) => description);

describeOnStacks('checkpoints', (stack) => {
  verifies('HCP-116', 'is stored when it is told of, with what is needed to go on', async () => {
    await using world = await World.create(stack());
    const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
    await world.serve(async (_, run) => {
      await run.checkpoint({ 'a.b': { $set: [1, null] } }, { description: 'odd keys', resumable: false });
      await finish;
      return { outputs: {} };
    });
    await world.submit();
    const { sessionId } = await world.started();
    const created = await world.next();
    const [row] = await stored(world, sessionId);
    expect(created).toMatchObject({
      payload: {
        event_type: 'checkpoint_created',
        sequence: 3,
        data: {
          checkpoint_id: row?.checkpoint_id,
          description: 'odd keys',
          resumable: false,
          created_at: row?.created_at,
        },
      },
    });
    expect(row).toMatchObject({ data: '{"a.b":{"$set":[1,null]}}', sequence: 3, resumable: 0 });
    expect(row?.checkpoint_id).toMatch(/^ckpt-[0-9A-HJKMNP-TV-Z]{26}$/);
    tellFinish();
  });

  verifies(['V-88', 'HCP-116'], 'one that is refused spends nothing', async () => {
    await using world = await World.create(stack());
    const refusals: unknown[] = [];
    const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
    await world.serve(
      async (_, run) => {
        const circular: Record<string, unknown> = {};
        circular.self = circular;
        for (const data of ['x'.repeat(99), 'é'.repeat(50), undefined, 10n, circular]) {
          await run
            .checkpoint(data, { description: 'refused' })
            .catch((error) => refusals.push(error.code ?? error.name));
        }
        await run.checkpoint('x'.repeat(98), { description: 'just fits' });
        await finish;
        return { outputs: {} };
      },
      { maxCheckpointBytes: 100 },
    );
    await world.submit();
    const { sessionId } = await world.started();
    expect(await world.next()).toMatchObject({ payload: { sequence: 3, data: { description: 'just fits' } } });
    expect(refusals).toEqual(['checkpoint_too_large', 'checkpoint_too_large', 'TypeError', 'TypeError', 'TypeError']);
    expect(descriptions(await stored(world, sessionId))).toEqual(['just fits']);
    tellFinish();
    expect(await world.next()).toMatchObject({ payload: { execution_summary: { checkpoints_created: 1 } } });
  });

  verifies('HCP-116', 'only the newest are kept', async () => {
    await using world = await World.create(stack());
    await world.serve(
      async (_, run) => {
        for (let i = 1; i <= 6; i++) await run.checkpoint({ i }, { description: `number ${i}` });
        return { outputs: {} };
      },
      { keptCheckpoints: 2 },
    );
    await world.submit();
    const { sessionId } = await world.started();
    await world.hearOut();
    expect(descriptions(await stored(world, sessionId))).toEqual(['number 5', 'number 6']);
  });

  verifies('HCP-117', 'the newest to resume from is kept, however many others follow', async () => {
    await using world = await World.create(stack());
    await world.serve(
      async (_, run) => {
        for (const [description, resumable] of [
          ['a', true],
          ['b', true],
          ['c', false],
          ['d', false],
          ['e', false],
        ] as const) {
          await run.checkpoint({}, { description, resumable });
        }
        return { outputs: {} };
      },
      { keptCheckpoints: 2 },
    );
    await world.submit();
    const { sessionId } = await world.started();
    await world.hearOut();
    expect(descriptions(await stored(world, sessionId))).toEqual(['b', 'd', 'e']);
  });

  verifies(
    ['HCP-016', 'HCP-117'],
    'a task with none to resume from gets time to end when its callee closes',
    async () => {
      await using world = await World.create(stack());
      const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
      const executor: Executor = async (_, run) => {
        await run.checkpoint({}, { description: 'for the record', resumable: false });
        await finish;
        return { outputs: {} };
      };
      const callee = await world.serve(executor);
      await world.submit();
      await world.started();
      await world.next();
      const closed = callee.close();
      tellFinish();
      expect((await world.hearOut()).at(-1)).toBe('E5 closed COMPLETED task_completed');
      await closed;
    },
  );
});
