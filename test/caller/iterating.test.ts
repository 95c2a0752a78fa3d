import { expect } from 'vitest';
import type { Session } from '../../caller/index.ts';
import type { EventMessage } from '../../schemas/types.ts';
import { CallerRoom, collect, TIMES } from '../support/caller-room.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const numbers = (events: readonly EventMessage[]) => events.map(({ payload }) => payload.sequence);

/** Reads so many events, the last of them without asking for the next. */
async function readAndBreak(session: Session, count: number): Promise<number[]> {
  const read: number[] = [];
  for await (const { payload } of session.events()) {
    read.push(payload.sequence);
    if (read.length === count) break;
  }
  return read;
}

describeOnStacks('iterating over events', (stack) => {
  verifies(
    ['HCP-207', 'HCP-209', 'HCP-210'],
    'gives each event once and in order, and ends with the session',
    async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller();
      const { session, sessionId } = await room.begin(caller);
      const read = collect(session.events());
      await room.callee.report(sessionId, 1, 2, 2, 5, 4, 1, 3, 5);
      await room.callee.complete(sessionId);
      await room.callee.closed(sessionId, 6, 'COMPLETED');
      expect(numbers(await read)).toEqual([1, 2, 3, 4, 5, 6]);
      const row = await room.store.get('follows', [room.callerId, sessionId]);
      expect(row).toMatchObject({ last_processed_sequence: 6, final_state: 'COMPLETED' });
      expect(await room.store.scan('parked', 'key', { where: [room.callerId, sessionId], limit: 10 })).toEqual([]);
      expect(await collect(session.events())).toEqual([]);
    },
  );

  verifies('HCP-211', 'goes on after the gap time, with the hole told', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller);
    const read = collect(session.events());
    await room.callee.report(sessionId, 1, 4);
    await room.clock.ring(TIMES.gapHoldMs);
    await room.callee.closed(sessionId, 5, 'FAILED');
    expect(numbers(await read)).toEqual([1, 4, 5]);
    expect(room.told.all).toEqual(['gap 2..3']);
    const row = await room.store.get('follows', [room.callerId, sessionId]);
    expect(row).toMatchObject({ holes: '[[2,3]]' });
  });

  verifies('HCP-215', 'a loop that is broken off is taken up at the event that was not acknowledged', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller);
    await room.callee.report(sessionId, 1, 2, 3, 4);
    expect(await readAndBreak(session, 2)).toEqual([1, 2]);
    expect(await readAndBreak(session, 2)).toEqual([2, 3]);
    await room.callee.closed(sessionId, 5, 'COMPLETED');
    expect(numbers(await collect(session.events()))).toEqual([3, 4, 5]);
  });

  verifies(['HCP-206', 'HCP-215'], 'a restart goes on at the cursor, also with what was never read', async () => {
    await using room = await CallerRoom.create(stack());
    const first = await room.caller();
    const { session, sessionId } = await room.begin(first);
    await room.callee.report(sessionId, 1, 2, 3, 4);
    expect(await readAndBreak(session, 3)).toEqual([1, 2, 3]);
    await first.close();
    await room.callee.report(sessionId, 4, 5);
    await room.callee.complete(sessionId, { all: true });
    await room.callee.closed(sessionId, 6, 'COMPLETED');
    const again = await (await room.caller()).session(sessionId);
    expect(again && numbers(await collect(again.events()))).toEqual([3, 4, 5, 6]);
    expect(await again?.result()).toMatchObject({ outputs: { all: true } });
  });

  verifies('HCP-215', 'what a session told before its end can be read in a later life', async () => {
    await using room = await CallerRoom.create(stack());
    const first = await room.caller();
    const { session, sessionId } = await room.begin(first);
    await room.callee.report(sessionId, 1, 2);
    await room.callee.complete(sessionId);
    await room.callee.closed(sessionId, 3, 'COMPLETED');
    expect(await session.result()).toMatchObject({ status: 'completed' });
    await room.ended(sessionId);
    await first.close();
    const again = await (await room.caller()).session(sessionId);
    expect(again && numbers(await collect(again.events()))).toEqual([1, 2, 3]);
    expect(again?.state).toBe('COMPLETED');
  });

  verifies('HCP-214', 'a session nobody reads does not hold up another', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller({ prefetch: 2 });
    const ignored = await room.begin(caller);
    const followed = await room.begin(caller);
    await room.callee.report(ignored.sessionId, 1, 2, 3, 4, 5, 6);
    await room.callee.report(followed.sessionId, 1);
    await room.callee.complete(followed.sessionId);
    await room.callee.closed(followed.sessionId, 2, 'COMPLETED');
    expect(numbers(await collect(followed.session.events()))).toEqual([1, 2]);
    expect(await readAndBreak(ignored.session, 6)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  verifies('HCP-214', 'a gap in one session does not hold up another, with one message in hand', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller({ prefetch: 1 });
    const [broken, whole] = [await room.begin(caller), await room.begin(caller)];
    await room.callee.report(broken.sessionId, 2, 3);
    await room.callee.report(whole.sessionId, 1);
    await room.callee.closed(whole.sessionId, 2, 'ABORTED');
    expect(numbers(await collect(whole.session.events()))).toEqual([1, 2]);
    await room.callee.report(broken.sessionId, 1);
    expect(await readAndBreak(broken.session, 3)).toEqual([1, 2, 3]);
  });

  verifies('HCP-208', 'the cursor moves when the next event is asked for, not before', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller);
    await room.callee.report(sessionId, 1, 2);
    const cursor = async () => (await room.store.get('follows', [room.callerId, sessionId]))?.last_processed_sequence;
    const events = session.events()[Symbol.asyncIterator]();
    await events.next();
    expect(await cursor()).toBe(-1);
    await events.next();
    expect(await cursor()).toBe(1);
    await events.return?.();
    expect(await cursor()).toBe(1);
  });

  verifies('HCP-208', 'a signal ends the loop with its reason, also while it waits', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller);
    await room.callee.report(sessionId, 1);
    const stop = new AbortController();
    const events = session.events({ signal: stop.signal })[Symbol.asyncIterator]();
    expect((await events.next()).value?.payload.sequence).toBe(1);
    const waiting = events.next();
    const reason = new Error('Enough');
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(collect(session.events({ signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
    await room.callee.closed(sessionId, 2, 'COMPLETED');
    expect(numbers(await collect(session.events()))).toEqual([2]);
  });

  verifies('HCP-209', 'one loop at a time reads a session', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller);
    const read = collect(session.events());
    await expect(collect(session.events())).rejects.toThrow(
      new TypeError('The events of this session are being read by another loop'),
    );
    await room.callee.closed(sessionId, 1, 'COMPLETED');
    expect(numbers(await read)).toEqual([1]);
  });

  verifies('HCP-216', 'a caller with a handler has no loop', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller({ onEvent: () => {} });
    const { session } = await room.begin(caller);
    expect(() => session.events()).toThrow(new TypeError('events() is for a caller without onEvent'));
  });

  verifies('HCP-215', 'closing the caller ends a loop that waits', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller);
    await room.callee.report(sessionId, 1);
    const events = session.events()[Symbol.asyncIterator]();
    await events.next();
    const waiting = events.next();
    const outcome = expect(waiting).rejects.toMatchObject({ code: 'caller_closed' });
    await caller.close();
    await outcome;
    await expect(session.result()).rejects.toMatchObject({ code: 'caller_closed' });
  });

  verifies('V-128', 'a loop ends where the session is closed locally', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller);
    const read = collect(session.events());
    await room.callee.report(sessionId, 1);
    await room.callee.complete(sessionId);
    await session.result();
    await room.clock.ring(TIMES.graceMs);
    expect(numbers(await read)).toEqual([1]);
  });
});
