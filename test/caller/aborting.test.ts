import { expect } from 'vitest';
import { CallerRoom, TIMES } from '../support/caller-room.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const constraints = { abort_timeout: 'PT10S' };
const ABORT_MS = 10_000 + TIMES.graceMs;

describeOnStacks('aborting', (stack) => {
  verifies(['HCP-232', 'HCP-228'], "an abort carries the session's own id and token", async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller, { constraints });
    const aborted = session.abort('Changed my mind');
    expect(await room.callee.command('abort')).toMatchObject({
      session_id: sessionId,
      payload: { session_token: `token of ${sessionId}`, reason: 'Changed my mind' },
    });
    await room.callee.move(sessionId, 1, 'RUNNING', 'ABORTING');
    await room.callee.closed(sessionId, 2, 'ABORTED');
    expect(await aborted).toEqual({ status: 'aborted' });
    expect(await session.result()).toEqual({ status: 'aborted' });
    expect(room.clock.has(ABORT_MS)).toBe(false);
  });

  verifies('HCP-232', 'an abort that reaches nobody is an error', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session } = await room.begin(caller, { constraints });
    await room.callee.vanish();
    await expect(session.abort()).rejects.toMatchObject({ code: 'callee_unreachable' });
    expect(room.clock.has(ABORT_MS)).toBe(false);
  });

  verifies(['V-137', 'HCP-225'], 'a callee that does not abort in time is reported, and followed on', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller, { constraints });
    const aborted = session.abort().catch((error: unknown) => error);
    await room.callee.command('abort');
    await room.callee.move(sessionId, 1, 'RUNNING', 'ABORTING');
    await room.clock.ring(ABORT_MS);
    expect(await aborted).toMatchObject({ code: 'abort_timeout' });
    expect(room.told.all).toEqual(['trouble abort_timeout']);
    await room.callee.closed(sessionId, 2, 'ABORTED');
    expect(await session.result()).toEqual({ status: 'aborted' });
  });

  verifies('V-137', 'aborting again sends again; the first deadline counts for both', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session } = await room.begin(caller, { constraints });
    const both = [session.abort('once'), session.abort('twice')].map((aborted) =>
      aborted.catch((error: unknown) => error),
    );
    const reasons = [await room.callee.command('abort'), await room.callee.command('abort')].map(
      ({ payload }) => payload.reason,
    );
    expect(reasons).toEqual(['once', 'twice']);
    await room.clock.armed(ABORT_MS);
    // The second is sure to have been sent by then, not to wait: a third one tells.
    const third = session.abort('thrice').catch((error: unknown) => error);
    await room.callee.command('abort');
    await room.clock.ring(ABORT_MS);
    expect(await Promise.all(both)).toMatchObject([{ code: 'abort_timeout' }, { code: 'abort_timeout' }]);
    await caller.close();
    expect(await third).toMatchObject({ code: expect.stringMatching(/abort_timeout|caller_closed/) });
  });

  verifies('HCP-225', 'a task that ends otherwise meanwhile tells how', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller, { constraints });
    const aborted = session.abort();
    await room.callee.command('abort');
    await room.callee.complete(sessionId, { quick: true });
    expect(await aborted).toMatchObject({ status: 'completed', outputs: { quick: true } });
    expect(room.clock.has(ABORT_MS)).toBe(false);
  });

  verifies('HCP-232', 'what has ended is not aborted', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller, { constraints });
    await room.callee.complete(sessionId);
    await session.result();
    expect(await session.abort()).toMatchObject({ status: 'completed' });
    expect([room.callee.unheard, room.clock.has(ABORT_MS)]).toEqual([0, false]);
  });

  verifies(['HCP-225', 'HCP-229'], 'a stalled session can be aborted', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller, { constraints: { ...constraints, max_duration: 'PT1M' } });
    await room.clock.ring(60_000 + TIMES.graceMs);
    await room.told.until('trouble session_stalled');
    const aborted = session.abort();
    await room.callee.command('abort');
    await room.callee.closed(sessionId, 1, 'ABORTED');
    expect(await aborted).toEqual({ status: 'aborted' });
  });

  verifies('HCP-232', 'a session of an earlier life is aborted with its token', async () => {
    await using room = await CallerRoom.create(stack());
    const first = await room.caller();
    const { sessionId } = await room.begin(first, { constraints });
    await first.close();
    const session = await (await room.caller()).session(sessionId);
    const aborted = session?.abort();
    expect(await room.callee.command('abort')).toMatchObject({
      session_id: sessionId,
      payload: { session_token: `token of ${sessionId}` },
    });
    await room.callee.closed(sessionId, 1, 'ABORTED');
    expect(await aborted).toEqual({ status: 'aborted' });
  });
});
