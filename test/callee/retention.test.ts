import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { purgeSessions } from '../../callee/retention.ts';
import { draftCheckpoint, insertCheckpoint } from '../../session/checkpoints.ts';
import { type LogEntry, logRow } from '../../session/log.ts';
import { newRecord, rowOf, type SessionRecord } from '../../session/record.ts';
import type { Row, Store } from '../../shared/store/store.ts';
import { RecordingClock, recordingLogger } from '../support/recorder.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = Date.UTC(2025, 0, 15);

interface Sizes {
  readonly log?: number;
  readonly checkpoints?: number;
  readonly commands?: number;
}

/** Stores a session with all that belongs to it. */
async function keep(
  store: Store,
  calleeId: string,
  closedAt: number | undefined,
  { log = 3, checkpoints = 2, commands = 1 }: Sizes = {},
): Promise<SessionRecord> {
  const record = newRecord({
    ...{ sessionId: randomUUID(), calleeId, callerId: 'alpha', messageId: randomUUID(), owner: 'i1', epoch: 1 },
    ...{ state: closedAt === undefined ? 'RUNNING' : 'COMPLETED', request: '{}', trace: '{}', active: false },
    ...{ createdAt: 0, publishedThrough: log, closedAt },
  });
  const { sessionId: session_id, callerId: caller_id, messageId: message_id } = record;
  const entry = (position: number): LogEntry => ({
    ...{ sessionId: session_id, position, sequence: position, kind: 'log', messageId: randomUUID(), at: 0 },
    body: Buffer.from('{}'),
  });
  for (let at = 1; at <= log; at += 500) {
    const length = Math.min(500, log - at + 1);
    await store.append(
      'log',
      Array.from({ length }, (_, index) => logRow(entry(at + index))),
    );
  }
  const draft = () => draftCheckpoint({}, { description: 'd', resumable: true, now: NOW, maxBytes: 100 });
  const command = (): Row => ({
    ...{ session_id, message_id: randomUUID(), callee_id: calleeId, received_at: 0, body: '{}' },
    ...{ user_id: null, app_id: null },
  });
  const answer = { callee_id: calleeId, caller_id, message_id, session_id, fingerprint: 'f', answer: '{}' };
  await store.commit([
    { insert: 'sessions', row: rowOf(record) },
    { insert: 'answers', row: answer },
    ...Array.from({ length: checkpoints }, (_, index) => insertCheckpoint(session_id, index, draft())),
    ...Array.from({ length: commands }, () => ({ insert: 'commands', row: command() })),
  ]);
  return record;
}

/** How many rows of each table a session has. */
async function rowsOf(store: Store, { sessionId, calleeId, callerId, messageId }: SessionRecord) {
  const count = async (table: string) => (await store.scan(table, 'key', { where: [sessionId], limit: 1000 })).length;
  return {
    sessions: await count('sessions'),
    log: await count('log'),
    checkpoints: await count('checkpoints'),
    commands: await count('commands'),
    answers: (await store.get('answers', [calleeId, callerId, messageId])) === undefined ? 0 : 1,
  };
}

const NOTHING = { sessions: 0, log: 0, checkpoints: 0, commands: 0, answers: 0 };
const ALL = { sessions: 1, log: 3, checkpoints: 2, commands: 1, answers: 1 };

describeOnStacks('what is kept of a session', (stack) => {
  verifies('HCP-104', 'goes whole when its time is over; younger and open ones stay, others’ too', async () => {
    await using store = await stack().openStore();
    const calleeId = `lab-${randomUUID()}`;
    const old = await keep(store, calleeId, NOW - 1);
    const due = await keep(store, calleeId, NOW);
    const young = await keep(store, calleeId, NOW + 1);
    const open = await keep(store, calleeId, undefined);
    const foreign = await keep(store, `${calleeId}-2`, NOW - 1);
    const told: string[] = [];
    expect(await purgeSessions(store, calleeId, NOW, (sessionId) => told.push(sessionId))).toBe(2);
    expect(told).toEqual([old.sessionId, due.sessionId]);
    for (const record of [old, due]) expect(await rowsOf(store, record)).toEqual(NOTHING);
    for (const record of [young, open, foreign]) expect(await rowsOf(store, record)).toEqual(ALL);
    expect(await purgeSessions(store, calleeId, NOW, () => {})).toBe(0);
  });

  verifies('HCP-104', 'goes also when it is much: thousands of messages, hundreds of sessions', async () => {
    await using store = await stack().openStore();
    const calleeId = `lab-${randomUUID()}`;
    const long = await keep(store, calleeId, NOW - 5, { log: 3001, checkpoints: 300 });
    const short: SessionRecord[] = [];
    for (let i = 0; i < 120; i++) short.push(await keep(store, calleeId, NOW - i, { log: 1, checkpoints: 0 }));
    expect(await purgeSessions(store, calleeId, NOW, () => {})).toBe(121);
    for (const record of [long, ...short]) expect(await rowsOf(store, record)).toEqual(NOTHING);
  });

  verifies('HCP-104', 'is found again when removing it was interrupted', async () => {
    await using store = await stack().openStore();
    const calleeId = `lab-${randomUUID()}`;
    const record = await keep(store, calleeId, NOW, { log: 700 });
    let commits = 0;
    const dying: Store = {
      ...store,
      commit: async (writes) => {
        if (++commits === 2) throw new Error('The process died here');
        return store.commit(writes);
      },
    };
    await expect(purgeSessions(dying, calleeId, NOW, () => {})).rejects.toThrow('died here');
    expect(await rowsOf(store, record)).toMatchObject({ sessions: 1, answers: 1, log: 200 });
    expect(await purgeSessions(store, calleeId, NOW, () => {})).toBe(1);
    expect(await rowsOf(store, record)).toEqual(NOTHING);
  });

  verifies(
    ['HCP-103', 'HCP-104'],
    'is kept for its time, in which a repeated submit gets the same answer, and then removed by the callee',
    async () => {
      await using world = await World.create(stack());
      const clock = new RecordingClock();
      const { logger, lines } = recordingLogger();
      await world.serve(async () => ({ outputs: {} }), { clock, logger, retention: 'P7D' });
      const messageId = randomUUID();
      await world.submit({}, messageId);
      const { sessionId } = await world.started();
      await world.hearOut();
      const answer = Buffer.from(world.received[0]?.body ?? []).toString();

      clock.advance(7 * DAY - 2 * HOUR);
      await world.submit({}, messageId);
      expect(tell(await world.next())).toBe('task_accepted');
      expect(Buffer.from(world.received.at(-1)?.body ?? []).toString()).toBe(answer);
      await world.submit();
      const { sessionId: younger } = await world.started();
      await world.hearOut();

      // The next look at the clock is an hour after the last.
      for (let looks = 2; looks <= 4; looks++) {
        await clock.asked(HOUR, looks);
        clock.advance(HOUR);
      }
      await lines.until((all) => all.some((line) => line.includes('Removed sessions past their retention')));
      expect(await world.store.get('sessions', [sessionId])).toBeUndefined();
      expect(await world.store.scan('log', 'key', { where: [sessionId] })).toEqual([]);
      expect(await world.store.get('answers', [world.calleeId, world.callerId, messageId])).toBeUndefined();
      expect(await world.store.get('sessions', [younger])).toBeDefined();
      expect(await world.store.scan('log', 'key', { where: [younger] })).not.toEqual([]);
    },
  );
});
