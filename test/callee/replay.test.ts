import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { CalleeOptions, CallerRights, GateRequest } from '../../callee/index.ts';
import { planReplay } from '../../callee/replay.ts';
import { purgeSessions } from '../../callee/retention.ts';
import { untilStopped } from '../support/executors.ts';
import { ALL, askReplay, askStatus, bodies, dataOf, talkative } from '../support/inquiries.ts';
import { under } from '../support/login.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const LAST = Number.MAX_SAFE_INTEGER;
const asked = { extensions: ALL };

/** A task that has said events 1 to 5 and goes on: they are bodies 1 to 5 of what was received. */
async function startTalking(world: World, options: Partial<CalleeOptions> = {}) {
  const { executor, finish } = talkative(3);
  const callee = await world.serve(executor, options);
  await world.submit(asked);
  const session = await world.started();
  expect((await world.hear(3)).map(tell)).toEqual(['E3 progress', 'E4 progress', 'E5 progress']);
  return { ...session, callee, finish };
}

describe('planReplay', () => {
  it.each([
    ['a stretch of the log', [2, 4], 5, [2, 4], undefined],
    ['from before the first one', [0, 4], 5, [1, 4], undefined],
    ['beyond the last one', [4, 9], 5, [4, 5], [6, 'not_said']],
    ['wholly beyond', [8, 9], 5, [8, 5], [8, 'not_said']],
    ['before the first one alone', [0, 0], 5, [1, 0], [0, 'not_said']],
    ['a thousand', [1, 1000], 5000, [1, 1000], undefined],
    ['more than a thousand', [1, 1001], 5000, [1, 1000], [1001, 'limit']],
    ['everything there will ever be', [3, LAST], 5000, [3, 1002], [1003, 'limit']],
  ] as const)('%s', (_, [from_sequence, to_sequence], last, [from, to], beyond) => {
    const said = beyond ? [{ from_sequence: beyond[0], to_sequence, reason: beyond[1] }] : [];
    expect(planReplay({ from_sequence, to_sequence }, last)).toEqual({ from, to, beyond: said });
  });
});

describeOnStacks('replay/1', (stack) => {
  verifies(
    ['replay/1', 'HCP-112'],
    'events are published again byte for byte, during the run and after it',
    async () => {
      await using world = await World.create(stack());
      const { sessionId, token, finish } = await startTalking(world);
      await askReplay(world, sessionId, [2, 4], { token });
      expect((await world.hear(3)).map(tell).at(-1)).toBe('E4 progress');
      expect(bodies(world, 6)).toEqual(bodies(world, 2, 5));
      for (const [again, first] of [6, 7, 8].map((i) => [world.received[i], world.received[i - 4]])) {
        expect(again?.route).toEqual(first?.route);
        expect(again?.properties).toEqual(first?.properties);
      }
      finish();
      expect((await world.hear(3)).map(tell)[0]).toBe('task_completed');
      await askReplay(world, sessionId, [1, 7]);
      await world.hear(7);
      // The result is no event: it stands between them in the log, and is not sent again.
      expect(bodies(world, 12)).toEqual([...bodies(world, 1, 6), ...bodies(world, 10, 12)]);
      await world.echo();
    },
  );

  verifies(['replay/1', 'HCP-112'], 'what an earlier life said is published again by the next one', async () => {
    await using world = await World.create(stack());
    const first = await world.serve(async (task, run) => {
      await run.checkpoint({ done: 1 }, { description: 'half' });
      return untilStopped(task, run);
    });
    await world.submit(asked);
    const { sessionId, token } = await world.started();
    expect(tell(await world.next())).toBe('E3 checkpoint_created');
    await first.close();
    await world.serve(untilStopped);
    const recovered = await world.hearFresh(2);
    expect(recovered.map(tell).at(-1)).toBe('E5 PAUSED→RUNNING recovered_from_checkpoint');
    const before = world.received.length;
    const originals = world.received.filter(({ properties }) => properties.type === 'event');
    const distinct = [...new Set(originals.map(({ body }) => Buffer.from(body).toString()))];
    await askReplay(world, sessionId, [1, 5], { token });
    await world.hear(5);
    expect(bodies(world, before)).toEqual(distinct);
  });

  verifies(['replay/1', 'HCP-115'], 'beyond the last event there is nothing, which is told', async () => {
    await using world = await World.create(stack());
    const { sessionId, finish } = await startTalking(world);
    await askReplay(world, sessionId, [5, 8]);
    expect(tell(await world.next())).toBe('E5 progress');
    const told = { event: 'x-replay-unavailable', reason: 'not_said' };
    expect(dataOf(await world.next())).toEqual({ ...told, sequence: 6, from_sequence: 6, to_sequence: 8 });
    finish();
    expect((await world.hearOut()).at(-1)).toBe('E8 closed COMPLETED task_completed');
    await askReplay(world, sessionId, [8, LAST]);
    expect(tell(await world.next())).toBe('E8 closed COMPLETED task_completed');
    // Nothing follows session_closed in the stream: the answer stands outside of it.
    expect(dataOf(await world.next())).toEqual({ ...told, sequence: 0, from_sequence: 9, to_sequence: LAST });
    // An answer in the stream is an event like any other.
    await askReplay(world, sessionId, [6, 6]);
    expect(dataOf(await world.next())).toEqual({ ...told, sequence: 6, from_sequence: 6, to_sequence: 8 });
    await world.echo();
  });

  verifies('replay/1', 'what is no longer held is told, and the rest is published again', async () => {
    await using world = await World.create(stack());
    const { sessionId, finish } = await startTalking(world);
    const told = { event: 'x-replay-unavailable', reason: 'not_held' };
    const lose = async (...sequences: number[]) => {
      const rows = await world.store.scan('log', 'key', { where: [sessionId] });
      const lost = rows.filter((row) => sequences.includes(Number(row.sequence)));
      await world.store.commit(lost.map(({ position }) => ({ delete: 'log', key: [sessionId, Number(position)] })));
    };
    await lose(2, 3);
    await askReplay(world, sessionId, [1, 4]);
    expect((await world.hear(2)).map(tell)).toEqual(['E1 session_created', 'E4 progress']);
    expect(dataOf(await world.next())).toEqual({ ...told, sequence: 6, from_sequence: 2, to_sequence: 3 });
    finish();
    await world.hearOut();
    await lose(1, 5);
    await askReplay(world, sessionId, [1, 5]);
    expect(tell(await world.next())).toBe('E4 progress');
    expect((await world.hear(2)).map(dataOf)).toEqual([
      { ...told, sequence: 0, from_sequence: 1, to_sequence: 3 },
      { ...told, sequence: 0, from_sequence: 5, to_sequence: 5 },
    ]);
  });

  verifies('replay/1', 'one request gets a thousand events at most, and is told where to go on', async () => {
    await using world = await World.create(stack());
    const { executor, finish } = talkative(1100);
    await world.serve(executor);
    finish();
    await world.submit(asked);
    const { sessionId } = await world.started();
    expect((await world.hearOut()).at(-1)).toBe('E1104 closed COMPLETED task_completed');
    const before = world.received.length;
    await askReplay(world, sessionId, [1, LAST]);
    const heard = await world.hear(1001);
    expect(bodies(world, before, before + 1000)).toEqual(bodies(world, 1, 1001));
    const limit = { event: 'x-replay-unavailable', sequence: 0, reason: 'limit' };
    expect(dataOf(heard.at(-1))).toEqual({ ...limit, from_sequence: 1001, to_sequence: LAST });
    await askReplay(world, sessionId, [1001, 1104]);
    expect((await world.hear(104)).map(tell).at(-1)).toBe('E1104 closed COMPLETED task_completed');
    await world.echo();
  });

  verifies('V-79', 'another caller gets nothing, nor does its asking send anything to the owner', async () => {
    await using world = await World.create(stack());
    const other = new SecondCaller(world);
    await other.listen();
    const policy = { callers: () => ({}) };
    const { sessionId, token, finish } = await startTalking(world, { policy });
    for (const state of ['RUNNING', 'COMPLETED']) {
      await askReplay(world, sessionId, [1, 9], { token, senderId: other.callerId });
      await askStatus(world, sessionId, { token, senderId: other.callerId });
      await world.echo();
      for (const audit of ['replay_refused', 'status_refused']) {
        expect(world.logged(new RegExp(`"audit":"${audit}".*"state":"${state}".*another caller`))).toHaveLength(1);
      }
      finish();
      if (state === 'RUNNING') await world.hearOut();
    }
    // The first thing it ever hears is what it asked for afterwards.
    await other.submit({ capability: 'test.echo' });
    expect(tell(await other.next())).toBe('task_rejected capability_not_found');
    expect(world.lines.join('\n')).not.toContain(token);
  });

  verifies(['V-76', 'V-78'], 'a wrong token gets nothing, nor does none where one is required', async () => {
    await using world = await World.create(stack());
    const { sessionId, token } = await startTalking(world, { abortToken: 'required' });
    await askReplay(world, sessionId, [1, 9], { token: 'forged-token-0123456789' });
    await askReplay(world, sessionId, [1, 9]);
    await world.echo();
    expect(world.logged(/"audit":"replay_refused".*its token is wrong/)).toHaveLength(1);
    expect(world.logged(/"audit":"replay_refused".*it has no token/)).toHaveLength(1);
    await askReplay(world, sessionId, [1, 1], { token });
    expect(tell(await world.next())).toBe('E1 session_created');
    expect(world.lines.join('\n')).not.toMatch(new RegExp(`${token}|forged-token`));
  });

  verifies('V-79', 'another login gets nothing, even with the token and the right name', async () => {
    await using world = await World.create(stack());
    let login = 'alice';
    const transport = under(await world.connect(), () => login);
    const { sessionId, token } = await startTalking(world, { transport });
    login = 'mallory';
    await askReplay(world, sessionId, [1, 9], { token });
    await world.echo();
    expect(world.logged(/"audit":"replay_refused".*another login/)).toHaveLength(1);
  });

  verifies('replay/1', 'an unknown session meets silence, and so does one that is purged', async () => {
    await using world = await World.create(stack());
    const { sessionId, token, finish } = await startTalking(world);
    finish();
    await world.hearOut();
    await purgeSessions(world.store, world.calleeId, Date.now() + 1, () => {});
    for (const unknown of [sessionId, randomUUID()]) {
      await askReplay(world, unknown, [1, 9], { token });
      await askStatus(world, unknown, { token });
    }
    await world.echo();
    expect(world.logged(/a session nobody knows/)).toHaveLength(4);
  });

  verifies(
    'replay/1',
    'an instance that does not run the session publishes its log, and has the owner say the rest',
    async () => {
      await using world = await World.create(stack());
      const { promise: busy, resolve: tellBusy } = Promise.withResolvers<void>();
      const { promise: decision, resolve: decide } = Promise.withResolvers<CallerRights | undefined>();
      const callers = ({ task }: GateRequest) => {
        if (task.capability !== 'test.busy') return {};
        tellBusy();
        return decision;
      };
      const { sessionId, finish } = await startTalking(world, { policy: { callers }, prefetch: 1 });
      await world.submit({ capability: 'test.busy' });
      await busy; // the owner takes no command now
      await world.serve(untilStopped);
      await askReplay(world, sessionId, [3, 4]);
      await world.hear(2);
      expect(bodies(world, 6)).toEqual(bodies(world, 3, 5));
      await askStatus(world, sessionId);
      const status = { event: 'x-status', state: 'RUNNING', last_sequence: 5, result_sent: false };
      expect(dataOf(await world.next())).toEqual({ ...status, sequence: 6 });
      await askReplay(world, sessionId, [7, 9]);
      expect(dataOf(await world.next())).toMatchObject({
        event: 'x-replay-unavailable',
        sequence: 7,
        from_sequence: 7,
      });
      expect(await world.store.scan('commands', 'by_callee', { where: [world.calleeId] })).toEqual([]);
      finish();
      expect((await world.hearOut()).at(-1)).toBe('E9 closed COMPLETED task_completed');
      decide(undefined);
      expect(tell(await world.next())).toBe('task_rejected unauthorized');
    },
  );
});
