import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Executor, Run } from '../../callee/index.ts';
import { untilStopped } from '../support/executors.ts';
import { audited, auditKinds, type FurnaceOptions, serveFurnace } from '../support/furnace.ts';
import { GuardProcess } from '../support/guard-process.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

/** Serves tasks that work until they are stopped; the first one is started. */
async function startTask(world: World, options: FurnaceOptions = {}, executor: Executor = untilStopped) {
  const running = Promise.withResolvers<Run>();
  const callee = await serveFurnace(
    world,
    (task, run) => {
      running.resolve(run);
      return executor(task, run);
    },
    options,
  );
  await world.submit();
  return { callee, ...(await world.started()), run: await running.promise };
}

describeOnStacks('a session that is revoked', (stack) => {
  verifies(
    ['HCP-308', 'HCP-312'],
    'stops at once, is brought into a safe state, fails, and that is on record',
    async () => {
      await using world = await World.create(stack());
      const procedures: string[] = [];
      const { callee, sessionId, run } = await startTask(world, {
        procedures: { shut_down: ({ message }) => void procedures.push(message) },
      });
      expect(await callee.revoke(sessionId, 'The permit was withdrawn')).toBe(true);
      expect(run.signal.reason).toMatchObject({ code: 'safety_violation' });
      const [failed] = [await world.next()];
      expect(failed).toMatchObject({
        type: 'task_failed',
        payload: { error_code: 'safety_violation', error_message: 'The permit was withdrawn' },
      });
      expect((await world.hearOut()).at(-1)).toBe('E4 closed FAILED safety_violation');
      await expect(run.guard.act('heat', { temperature: 20 })).rejects.toMatchObject({ code: 'safety_violation' });
      expect(procedures).toEqual(['The permit was withdrawn']);
      const violation = (await audited(world.store, world.calleeId, sessionId)).find(
        ({ kind }) => kind === 'violation',
      );
      expect(violation?.details).toMatchObject({
        ...{ caller_id: world.callerId, action: 'revocation', condition: 'token', message: 'The permit was withdrawn' },
      });
    },
  );

  verifies('HCP-308', 'fails from PAUSED, too', async () => {
    await using world = await World.create(stack());
    const { callee, sessionId, run } = await startTask(world);
    await run.pause();
    expect(await callee.revoke(sessionId, 'Enough')).toBe(true);
    expect(await world.hearOut()).toEqual([
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING safety_violation',
      'task_failed safety_violation',
      'E5 RUNNING→FAILED safety_violation',
      'E6 closed FAILED safety_violation',
    ]);
  });

  verifies('HCP-308', 'is ended once, however often it is revoked', async () => {
    await using world = await World.create(stack());
    let procedures = 0;
    const { callee, sessionId } = await startTask(world, { procedures: { shut_down: () => void procedures++ } });
    await Promise.all([1, 2, 3].map((i) => callee.revoke(sessionId, `Reason ${i}`)));
    expect((await world.hearOut()).at(-1)).toBe('E4 closed FAILED safety_violation');
    await world.echo();
    expect(procedures).toBe(1);
    expect(await callee.revoke(sessionId, 'Again')).toBe(false);
  });

  verifies('HCP-308', 'fails whatever the reason: one too long for a message is cut short', async () => {
    await using world = await World.create(stack());
    const { callee, sessionId } = await startTask(world);
    expect(await callee.revoke(sessionId, 'because '.repeat(300_000))).toBe(true);
    const [failed] = await world.hear(1);
    expect(failed).toMatchObject({ payload: { error_message: expect.stringMatching(/^because .{1992}…$/) } });
    expect((await world.hearOut()).at(-1)).toBe('E4 closed FAILED safety_violation');
  });

  verifies('HCP-308', 'is one of this callee, and not over: else there is nothing to revoke', async () => {
    await using world = await World.create(stack());
    const { callee, sessionId } = await startTask(world, {}, async () => ({ outputs: {} }));
    await world.hearOut();
    expect(await callee.revoke(sessionId, 'Too late')).toBe(false);
    expect(await callee.revoke(randomUUID(), 'Unknown')).toBe(false);
    const stranger = await World.create(stack());
    await using _ = stranger;
    const { callee: foreign, sessionId: theirs } = await startTask(stranger);
    expect(await callee.revoke(theirs, 'Not ours')).toBe(false);
    await stranger.echo();
    expect(await foreign.revoke(theirs, 'Ours')).toBe(true);
    expect((await stranger.hearOut()).at(-1)).toBe('E4 closed FAILED safety_violation');
    expect(await auditKinds(world, sessionId)).toEqual(['decision', 'ended']);
  });

  verifies('HCP-308', 'is ended by the instance that runs it, whichever is asked', async () => {
    await using world = await World.create(stack());
    const { sessionId, run } = await startTask(world);
    const other = await serveFurnace(world, untilStopped);
    expect(await other.revoke(sessionId, 'Enough')).toBe(true);
    expect((await world.hearOut()).at(-1)).toBe('E4 closed FAILED safety_violation');
    expect(run.signal.reason).toMatchObject({ code: 'safety_violation' });
    while ((await world.store.scan('commands', 'by_callee', { where: [world.calleeId] })).length > 0) {
      await new Promise(setImmediate); // it is forgotten right after
    }
  });

  verifies(['HCP-308', 'HCP-125'], 'does not keep other commands waiting while its emergency lasts', async () => {
    await using world = await World.create(stack());
    const cooling = Promise.withResolvers<void>();
    const cooled = Promise.withResolvers<void>();
    let first = '';
    const { sessionId } = await startTask(world, {
      procedures: {
        shut_down: (_, run) => {
          if (run.sessionId !== first) return;
          cooling.resolve();
          return cooled.promise;
        },
      },
    });
    first = sessionId;
    await world.submit();
    const next = await world.started();
    const other = await world.callee();
    await other.revoke(sessionId, 'Enough');
    await cooling.promise;
    await other.revoke(next.sessionId, 'Enough');
    const failed = await world.next();
    expect([failed.session_id, tell(failed)]).toEqual([next.sessionId, 'task_failed safety_violation']);
    await world.hearOut();
    cooled.resolve();
    expect((await world.hearOut()).at(-1)).toBe('E4 closed FAILED safety_violation');
  });

  verifies(
    'HCP-308',
    'while its process is dead fails as soon as somebody takes it up',
    async () => {
      await using world = await World.create(stack());
      await using first = await GuardProcess.start(stack(), world, 'quick');
      await world.submit();
      const { sessionId } = await world.started();
      expect(tell(await world.next())).toBe('E3 checkpoint_created');
      await first.kill();
      const operator = await serveFurnace(world, untilStopped);
      expect(await operator.revoke(sessionId, 'The permit was withdrawn')).toBe(true);
      await operator.close();
      await using second = await GuardProcess.start(stack(), world, 'quick');
      const told: string[] = [];
      while (!told.at(-1)?.includes('closed')) told.push(...(await world.hearFresh(1)).map(tell));
      expect(told.at(-1)).toMatch(/closed FAILED safety_violation/);
      await second.said('cooling token');
    },
    120_000,
  );

  verifies(
    'HCP-308',
    'by a process that is killed over it fails in the next one',
    async () => {
      await using world = await World.create(stack());
      await using first = await GuardProcess.start(stack(), world, 'endless');
      await world.submit();
      const { sessionId } = await world.started();
      const operator = await world.callee();
      expect(await operator.revoke(sessionId, 'The permit was withdrawn')).toBe(true);
      await first.said('cooling token');
      while ((await auditKinds(world, sessionId)).at(-1) !== 'violation') await new Promise(setImmediate);
      await first.kill();
      await using second = await GuardProcess.start(stack(), world, 'quick');
      const told: string[] = [];
      while (!told.at(-1)?.includes('closed')) told.push(...(await world.hearFresh(1)).map(tell));
      expect(told.at(-1)).toBe('E5 closed FAILED safety_violation');
      expect(second.lines.all).not.toContain('working again');
    },
    120_000,
  );
});
