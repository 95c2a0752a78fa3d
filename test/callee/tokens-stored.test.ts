import { expect } from 'vitest';
import { createKeyRing, generateKey, type KeyRing, openStoredKeyRing, type Run } from '../../callee/index.ts';
import { systemClock } from '../../shared/clock.ts';
import type { Row } from '../../shared/store/store.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { audited, ENVELOPE, type FurnaceOptions, serveFurnace } from '../support/furnace.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

/** Serves a task that can go on after a restart; tells of each time that it was begun. */
async function life(world: World, options: FurnaceOptions = {}) {
  const runs: Run[] = [];
  const begun = Promise.withResolvers<Run>();
  const callee = await serveFurnace(
    world,
    async (task, run) => {
      runs.push(run);
      if (run.resumedFrom === undefined) await run.checkpoint({ lit: true }, { description: 'lit' });
      begun.resolve(run);
      if (run.resumedFrom !== undefined && task.inputs.ends) return { outputs: {} };
      return untilStopped(task, run);
    },
    options,
  );
  return { callee, runs, begun: begun.promise };
}

/** A session that was handed over, and nobody took. */
async function leftBehind(world: World, options: FurnaceOptions = {}): Promise<{ sessionId: string; token: string }> {
  const { callee } = await life(world, options);
  await world.submit({ inputs: { ends: true } });
  const session = await world.started();
  expect(tell(await world.next())).toBe('E3 checkpoint_created');
  await callee.close();
  return session;
}

async function tamper({ store }: World, sessionId: string, set: Row): Promise<void> {
  if ((await store.commit([{ patch: 'sessions', key: [sessionId], set }])) !== 'committed') throw new Error('Not done');
}

const kidOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid;

/** By what was done to the row of a session behind the callee's back. */
const TAMPERED: Record<string, Row> = {
  'a higher risk': { risk_level: 'R2' },
  'another data class': { data_classification: 'T1' },
  'a wider envelope': { safety_envelope: JSON.stringify({ ...ENVELOPE, parameters: { temperature: { max: 9999 } } }) },
  'no envelope': { safety_envelope: null },
  'more time': { max_duration_ms: 360_000_000 },
  'more time to clean up': { abort_timeout_ms: 360_000_000 },
  'no token': { session_token: null },
  'an invented token': { session_token: 'let-me-in' },
};

const REFUSED = [
  'E4 RUNNING→PAUSED callee_restarted',
  'E5 PAUSED→RUNNING recovered_from_checkpoint',
  'task_failed safety_violation',
  'E6 RUNNING→FAILED safety_violation',
  'E7 closed FAILED safety_violation',
];

describeOnStacks('stored sessions and their tokens', (stack) => {
  verifies('HCP-308', 'a session that nobody touched goes on after a restart', async () => {
    await using world = await World.create(stack());
    await leftBehind(world);
    await life(world);
    expect((await world.hearOut()).at(-1)).toBe('E7 closed COMPLETED task_completed');
  });

  for (const [what, set] of Object.entries(TAMPERED)) {
    verifies('HCP-308', `a session that was given ${what} in the store is not run again`, async () => {
      await using world = await World.create(stack());
      const { sessionId } = await leftBehind(world);
      await tamper(world, sessionId, set);
      const { runs } = await life(world);
      expect(await world.hearOut()).toEqual(REFUSED);
      expect(runs).toEqual([]);
      const records = await audited(world.store, world.calleeId, sessionId);
      expect(records.find(({ kind }) => kind === 'violation')?.details).toMatchObject({
        ...{ action: 'start', condition: 'token', message: 'The session has no token in force' },
      });
    });
  }

  verifies('HCP-308', "a session that was given another session's token in the store is not run again", async () => {
    await using world = await World.create(stack());
    const other = await leftBehind(world);
    const callee = await life(world);
    await world.hearOut();
    await callee.callee.close();
    const { sessionId } = await leftBehind(world);
    await tamper(world, sessionId, { session_token: other.token });
    const { runs } = await life(world);
    expect(await world.hearOut()).toEqual(REFUSED);
    expect(runs).toEqual([]);
  });

  verifies(
    'HCP-308',
    'keys are rotated while sessions run: these go on, the next ones are signed with the new key',
    async () => {
      await using world = await World.create(stack());
      const clock = new ManualClock();
      const { begun, runs } = await life(world, { clock, leaseMs: 3_600_000 });
      await world.submit();
      const { token, sessionId } = await world.started();
      const run = await begun;
      expect(tell(await world.next())).toBe('E3 checkpoint_created');
      const operator = await openStoredKeyRing(world.store, world.calleeId, { clock: systemClock });
      await operator.rotate({ ...(await generateKey()), kid: 'k2' });
      await run.guard.act('heat', { temperature: 20 });
      clock.advance(60_000); // by now every instance has heard of it
      await run.guard.act('heat', { temperature: 20 });
      await world.submit();
      const next = await world.started();
      expect([kidOf(token), kidOf(next.token)]).toEqual(['k1', 'k2']);
      expect(tell(await world.next())).toBe('E3 checkpoint_created');

      await operator.retire('k1');
      clock.advance(60_000);
      await expect(run.guard.act('heat', { temperature: 20 })).rejects.toMatchObject({ code: 'safety_violation' });
      expect((await world.hearOut()).at(-1)).toBe('E5 closed FAILED safety_violation');
      await runs[1]?.guard.act('heat', { temperature: 20 });
      await world.abort(next.sessionId, { session_token: next.token });
      expect((await world.hearOut()).at(-1)).toBe('E6 closed ABORTED cleanup_complete');
      expect((await audited(world.store, world.calleeId, sessionId)).map(({ kind }) => kind).toSorted()).toEqual([
        'decision',
        'emergency',
        'ended',
        'violation',
      ]);
    },
  );

  verifies('HCP-308', 'a paused session whose key was retired is not resumed', async () => {
    await using world = await World.create(stack());
    const keys = await createKeyRing([await generateKey()]);
    const { begun } = await life(world, { keys });
    await world.submit();
    const { token } = await world.started();
    const run = await begun;
    await run.pause();
    await keys.rotate(await generateKey());
    await keys.retire(kidOf(token));
    await expect(run.resume()).rejects.toMatchObject({ code: 'token_invalid' });
    expect(await world.hearOut()).toEqual([
      'E3 checkpoint_created',
      'E4 RUNNING→PAUSED paused_by_callee',
      'E5 PAUSED→RUNNING safety_violation',
      'task_failed safety_violation',
      'E6 RUNNING→FAILED safety_violation',
      'E7 closed FAILED safety_violation',
    ]);
  });

  verifies('HCP-307', "a callee's own secret serves as well, and no other secret after it", async () => {
    await using world = await World.create(stack());
    const keys = await createKeyRing([await generateKey('HS256')]);
    const { token } = await leftBehind(world, { keys });
    expect(JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).alg).toBe('HS256');
    expect(await world.store.scan('keys', 'by_age', { where: [world.calleeId] })).toEqual([]);
    const second = await life(world, { keys });
    expect((await world.hearOut()).at(-1)).toBe('E7 closed COMPLETED task_completed');
    await second.callee.close();

    await leftBehind(world, { keys });
    const { runs } = await life(world, { keys: await createKeyRing([await generateKey('HS256')]) });
    expect(await world.hearOut()).toEqual(REFUSED);
    expect(runs).toEqual([]);
  });

  verifies('HCP-308', 'when the keys cannot be read, nothing is done and no limit counts as broken', async () => {
    await using world = await World.create(stack());
    const ring = await createKeyRing([await generateKey()]);
    let isAway = false;
    const keys: KeyRing = {
      ...ring,
      async verify(token, typ) {
        if (isAway) throw new Error('The key service is away');
        return ring.verify(token, typ);
      },
    };
    const { begun } = await life(world, { keys });
    await world.submit();
    const { sessionId } = await world.started();
    const run = await begun;
    isAway = true;
    await expect(run.guard.act('heat', { temperature: 20 })).rejects.toThrow('The key service is away');
    isAway = false;
    await run.guard.act('heat', { temperature: 20 });
    await world.abort(sessionId);
    expect((await world.hearOut()).at(-1)).toBe('E6 closed ABORTED cleanup_complete');
  });
});
