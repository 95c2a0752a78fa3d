import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, type CalleeOptions, type Executor, type Run } from '../../callee/index.ts';
import { createKeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import { canonicalJson } from '../../shared/canonical-json.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { audited, ENVELOPE, type FurnaceOptions, serveFurnace } from '../support/furnace.ts';
import { ALL, askReplay, askStatus } from '../support/inquiries.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

/** One part of a token, as an object. */
const read = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString());
const write = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Serves one task that works until it is stopped or told to finish, and starts it. */
async function startTask(world: World, options: FurnaceOptions = {}) {
  const finished = Promise.withResolvers<{ outputs: Record<string, unknown> }>();
  const running = Promise.withResolvers<Run>();
  const executor: Executor = (task, run) => {
    running.resolve(run);
    return Promise.race([finished.promise, untilStopped(task, run)]);
  };
  const callee = await serveFurnace(world, executor, options);
  await world.submit({ extensions: ALL });
  const [accepted, created] = await world.hear(3);
  if (accepted?.type !== 'task_accepted') throw new Error('Not accepted');
  const { session_id: sessionId, payload } = accepted;
  return {
    ...{ callee, sessionId, accepted: payload, created, token: payload.session_token, run: await running.promise },
    finish: () => finished.resolve({ outputs: {} }),
  };
}

/** Tokens that are not the one of the session, by what is wrong with them. */
async function wrongTokens(token: string, others: Record<string, string>): Promise<Record<string, string>> {
  const [header, claims, signature] = token.split('.');
  const { kid, typ } = read(header);
  const strangers = await createKeyRing([{ ...(await generateKey()), kid }]);
  const secret = await createKeyRing([{ ...(await generateKey('HS256')), kid }]);
  return {
    ...others,
    forged: await strangers.sign(read(claims), typ),
    'forged with a secret': await secret.sign(read(claims), typ),
    widened: `${header}.${write({ ...read(claims), risk: 'R5' })}.${signature}`,
    'for ever': `${header}.${write({ ...read(claims), exp: 9e9 })}.${signature}`,
    unsigned: `${write({ alg: 'none', kid, typ })}.${claims}.`,
    truncated: token.slice(0, -1),
    longer: `${token}A`,
    'spelt otherwise': `${token}=`,
    word: 'let-me-in',
  };
}

const DONE = ['task_completed', 'E3 RUNNING→COMPLETED task_completed', 'E4 closed COMPLETED task_completed'];

describeOnStacks('session tokens', (stack) => {
  verifies(
    'HCP-307',
    'say what was accepted: session, caller, risk, data class, limits, and for how long',
    async () => {
      await using world = await World.create(stack());
      const clock = new ManualClock();
      const { sessionId, accepted, created, token, finish } = await startTask(world, {
        ...{ clock, maxDuration: 'PT2H', abortTimeout: 'PT3M' },
        declaration: { version: '1.2.3', safety: { ...TASK.safety, risk_ceiling: 'R2' } },
      });
      const [header, claims] = token.split('.').map((part, index) => (index < 2 ? read(part) : part));
      expect(header).toEqual({ alg: 'EdDSA', kid: 'k1', typ: 'hcp-session+jwt' });
      const seconds = clock.now() / 1000;
      expect(claims).toEqual({
        ...{ iss: world.calleeId, sub: world.callerId, sid: sessionId, jti: expect.stringMatching(/^[0-9A-Z]{26}$/) },
        ...{ iat: seconds, exp: seconds + 7200, cap: 'test.task@1.2.3', risk: 'R2', data: 'T2' },
        lim: { max_duration: 'PT2H', abort_timeout: 'PT3M' },
        env: createHash('sha256').update(canonicalJson(ENVELOPE)).digest('hex'),
      });
      expect(accepted).toMatchObject({
        ...{ risk_level: claims.risk, data_classification: claims.data, constraints: claims.lim },
        safety_envelope: ENVELOPE,
      });
      expect(created).toMatchObject({ payload: { data: { session_token: token, risk_level: 'R2' } } });
      finish();
      expect(await world.hearOut()).toEqual(DONE);
    },
  );

  verifies('HCP-307', 'hold no longer than the task may run, and less where that is asked for', async () => {
    await using world = await World.create(stack());
    const lifetime = async (options: Partial<CalleeOptions>) => {
      const { token, finish, callee } = await startTask(world, options);
      finish();
      await world.hearOut();
      await callee.close();
      const { iat, exp } = read(token.split('.')[1]);
      return Math.round(exp - iat);
    };
    expect(await lifetime({ maxDuration: 'PT1H' })).toBe(3600);
    expect(await lifetime({ maxDuration: 'PT1H', tokenLifetime: 'PT10M' })).toBe(600);
    expect(await lifetime({ maxDuration: 'PT1H', tokenLifetime: 'PT10H' })).toBe(3600);
  });

  verifies(
    ['V-76', 'V-79', 'HCP-014', 'HCP-312'],
    'of whatever wrong kind stop and tell nothing; each try is on record, without the token',
    async () => {
      await using world = await World.create(stack());
      const beta = new SecondCaller(world);
      await beta.listen();
      const policy = acceptKnownCallers([world.callerId, beta.callerId]);
      const { sessionId, token, finish } = await startTask(world, { policy });
      await world.submit();
      const other = await world.started();
      await beta.submit();
      const [foreign] = await beta.hear(3);
      if (foreign?.type !== 'task_accepted') throw new Error('Not accepted');
      const wrong = await wrongTokens(token, {
        "another session's": other.token,
        "another caller's": foreign.payload.session_token,
      });
      for (const session_token of Object.values(wrong)) {
        await world.abort(sessionId, { session_token });
        await askStatus(world, sessionId, { token: session_token });
        await askReplay(world, sessionId, [1, 1], { token: session_token });
      }
      await world.abort(sessionId, { session_token: token }, 'mallory');
      await askStatus(world, sessionId, { token, senderId: 'mallory' });
      await world.echo(); // not a word

      const refused = (await audited(world.store, world.calleeId, sessionId)).filter(({ kind }) => kind !== 'decision');
      const tries = Object.keys(wrong).length;
      expect(refused.every(({ kind }) => kind === 'command_refused')).toBe(true);
      expect(count(refused.map(({ details }) => `${details.type}: ${details.why}`))).toEqual({
        'abort: its token is wrong': tries,
        'x-status: its token is wrong': tries,
        'x-replay: its token is wrong': tries,
        'abort: another caller sent it': 1,
        'x-status: another caller sent it': 1,
      });
      for (const { details } of refused) {
        expect(details).toMatchObject({ caller_id: world.callerId, state: 'RUNNING', message_id: expect.any(String) });
      }
      const shown = [...world.lines, JSON.stringify(refused)].join('\n');
      for (const secret of [token, ...Object.values(wrong)]) expect(shown).not.toContain(secret);
      finish();
      const ends: string[] = [];
      while (ends.length < 2) ends.push(...[tell(await world.next())].filter((line) => line.includes('closed')));
      expect(ends).toEqual(Array(2).fill('E4 closed COMPLETED task_completed'));
    },
  );

  verifies(
    ['V-78', 'HCP-312'],
    'are asked for where they are required, for questions too, and their lack is on record',
    async () => {
      await using world = await World.create(stack());
      const { sessionId, token } = await startTask(world, { abortToken: 'required' });
      await world.abort(sessionId);
      await askStatus(world, sessionId);
      await askReplay(world, sessionId, [1, 1]);
      await world.echo();
      const records = await audited(world.store, world.calleeId, sessionId);
      expect(records.slice(1).map(({ details }) => `${details.type}: ${details.why}`)).toEqual([
        'abort: it has no token',
        'x-status: it has no token',
        'x-replay: it has no token',
      ]);
      await askStatus(world, sessionId, { token });
      expect(tell(await world.next())).toBe('E3 x-status');
      await world.abort(sessionId, { session_token: token });
      expect((await world.hearOut()).at(-1)).toBe('E6 closed ABORTED cleanup_complete');
    },
  );

  verifies(['V-89', 'D-17'], 'that expire before the max duration end the session, and the guard refuses', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const options = { clock, leaseMs: 3_600_000, tokenLifetime: 'PT10M', maxDuration: 'PT1H' };
    const { run, sessionId } = await startTask(world, options);
    clock.advance(599_999);
    await run.guard.act('heat', { temperature: 20 });
    await world.echo();
    clock.advance(1);
    expect(await world.hearOut()).toEqual([
      'task_failed timeout',
      'E3 RUNNING→FAILED timeout',
      'E4 closed FAILED timeout',
    ]);
    await expect(run.guard.act('heat', { temperature: 20 })).rejects.toMatchObject({ code: 'session_closed' });
    const records = await audited(world.store, world.calleeId, sessionId);
    expect(records.map(({ kind }) => kind)).toEqual(['decision', 'ended']); // late, but nobody broke a limit
  });

  verifies(
    ['V-89', 'V-77', 'HCP-308'],
    'that expired end the session at the next action when the timer is late',
    async () => {
      await using world = await World.create(stack());
      const clock = new LateClock();
      let emergencies = 0;
      const { run } = await startTask(world, {
        ...{ clock, leaseMs: 3_600_000, tokenLifetime: 'PT10M' },
        procedures: { shut_down: () => void emergencies++ },
      });
      clock.lateByMs = 600_000;
      await expect(run.guard.act('heat', { temperature: 20 })).rejects.toMatchObject({ code: 'session_closed' });
      expect((await world.hearOut()).at(-1)).toBe('E4 closed FAILED timeout');
      expect(emergencies).toBe(0);
    },
  );

  verifies(['V-77', 'HCP-312'], 'that are genuine but expired still abort a session that is there', async () => {
    await using world = await World.create(stack());
    const clock = new LateClock();
    const { sessionId, token } = await startTask(world, { clock, leaseMs: 3_600_000, tokenLifetime: 'PT10M' });
    clock.lateByMs = 700_000;
    await world.abort(sessionId, { session_token: token, reason: 'Enough' });
    expect((await world.hearOut()).at(-1)).toBe('E5 closed ABORTED cleanup_complete');
    const records = await audited(world.store, world.calleeId, sessionId);
    expect(records.map(({ kind }) => kind)).toEqual(['decision', 'abort', 'ended']);
  });
});

function count(items: readonly string[]): Record<string, number> {
  return Object.fromEntries(items.map((item) => [item, items.filter((other) => other === item).length]));
}

/** Shows a later time than its timers know of, as a process that was held up does. */
class LateClock extends ManualClock {
  lateByMs = 0;

  override now(): number {
    return super.now() + this.lateByMs;
  }
}
