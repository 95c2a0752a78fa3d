import { expect } from 'vitest';
import { Scene } from '../support/scene.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

describeOnStacks('the order of a stream', (stack) => {
  verifies(['V-100', 'HCP-207'], 'an event that was processed before is skipped and acked', async () => {
    await using scene = await Scene.open(stack());
    const { caller, sessionId } = await scene.following(3);
    await scene.callee.events(sessionId, 3, 2, 3, 4);
    await scene.reaches(sessionId, 4);
    expect(scene.handled.all).toEqual([4]);
    await caller.close();
    expect(await scene.unacked()).toEqual([]);
  });

  verifies(['V-101', 'HCP-208'], 'the next event is handled, then stored, then acked', async () => {
    await using scene = await Scene.open(stack());
    const entered = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const seen: number[] = [];
    const { caller, sessionId } = await scene.following(3, {
      onEvent: async ({ payload }) => {
        if (payload.sequence === 4) entered.resolve();
        if (payload.sequence === 4) await gate.promise;
        seen.push(payload.sequence);
      },
    });
    await scene.callee.event(sessionId, 4);
    await entered.promise;
    expect(await scene.cursor(sessionId)).toBe(3);
    gate.resolve();
    await scene.reaches(sessionId, 4);
    await caller.close();
    expect(await scene.unacked()).toEqual([]);
    expect(seen).toEqual([1, 2, 3, 4]);
  });

  verifies(['V-104', 'HCP-209', 'HCP-210'], 'events that come too early wait for the one before', async () => {
    await using scene = await Scene.open(stack());
    const { sessionId } = await scene.following(3);
    await scene.callee.events(sessionId, 5, 6);
    await scene.holds(sessionId, 2);
    scene.clock.advance(4999);
    await scene.callee.event(sessionId, 4);
    await scene.reaches(sessionId, 6);
    expect(scene.handled.all).toEqual([4, 5, 6]);
    expect(scene.gaps.all).toEqual([]);
    expect(scene.log.lines.all.filter((line) => line.includes('"warn"'))).toEqual([]);
    expect(await scene.waitingRows(sessionId)).toEqual([]);
  });

  verifies(
    ['V-105', 'V-106', 'HCP-211'],
    'what does not come in time is recorded and passed over; if it comes later, the app is told',
    async () => {
      await using scene = await Scene.open(stack());
      const { caller, sessionId } = await scene.following(3);
      await scene.callee.event(sessionId, 5);
      await scene.clock.asked(5000);
      scene.clock.advance(5000);
      await scene.reaches(sessionId, 5);
      expect([scene.gaps.all, scene.handled.all]).toEqual([[[4, 4]], [5]]);
      expect(await scene.holes(sessionId)).toEqual([[4, 4]]);
      expect(scene.log.lines.all.filter((line) => line.includes('Events are missing'))).toHaveLength(1);
      await scene.callee.event(sessionId, 4);
      await scene.late.count(1);
      expect([scene.late.all, scene.handled.all, await scene.cursor(sessionId)]).toEqual([[4], [5], 5]);
      expect(await scene.holes(sessionId)).toEqual([]);
      await caller.close();
      expect(await scene.unacked()).toEqual([]);
    },
  );

  verifies('HCP-212', 'what waits is bounded: one event too many, and the oldest gap is given up', async () => {
    await using scene = await Scene.open(stack());
    const { sessionId } = await scene.following(3, { maxWaiting: 2 });
    await scene.callee.events(sessionId, 5, 6);
    await scene.holds(sessionId, 2);
    expect(scene.gaps.all).toEqual([]);
    await scene.callee.event(sessionId, 7);
    await scene.reaches(sessionId, 7);
    expect([scene.gaps.all, scene.handled.all]).toEqual([[[4, 4]], [5, 6, 7]]);
  });

  verifies(
    ['V-107', 'V-108', 'HCP-212'],
    'events that wait do not fill the window: the missing one still gets through',
    async () => {
      await using scene = await Scene.open(stack());
      const { sessionId } = await scene.following(3, { prefetch: 1 });
      const early = Array.from({ length: 12 }, (_, index) => 5 + index);
      await scene.callee.events(sessionId, ...early);
      await scene.holds(sessionId, 12);
      await scene.callee.event(sessionId, 4);
      await scene.reaches(sessionId, 16);
      expect(scene.handled.all).toEqual([4, ...early]);
    },
  );

  verifies(['V-107', 'V-108'], 'with a window of one the gap time applies', async () => {
    await using scene = await Scene.open(stack());
    const { sessionId } = await scene.following(3, { prefetch: 1 });
    await scene.callee.events(sessionId, 5, 7);
    await scene.holds(sessionId, 2);
    scene.clock.advance(5000);
    await scene.reaches(sessionId, 5);
    await scene.clock.asked(5000, 2);
    scene.clock.advance(5000);
    await scene.reaches(sessionId, 7);
    expect(scene.gaps.all).toEqual([
      [4, 4],
      [6, 6],
    ]);
    expect(await scene.holes(sessionId)).toEqual(scene.gaps.all);
  });

  verifies(['V-109', 'HCP-213'], 'nobody waits for what a recovery has lost', async () => {
    await using scene = await Scene.open(stack());
    const { sessionId } = await scene.following(3);
    await scene.callee.state(sessionId, 6, 'PAUSED', 'RUNNING', 'recovered_from_checkpoint');
    await scene.reaches(sessionId, 6);
    expect([scene.handled.all, scene.gaps.all]).toEqual([[6], [[4, 5]]]);
  });

  verifies(
    ['V-110', 'HCP-206'],
    'a stream starts with 1 or 0; before any other number something is missing',
    async () => {
      await using scene = await Scene.open(stack());
      const { caller, sessionId } = await scene.following(1);
      const [second, third] = [await scene.submit(caller), await scene.submit(caller)];
      await scene.callee.events(second.sessionId, 0, 1);
      await scene.reaches(second.sessionId, 1);
      await scene.callee.event(third.sessionId, 3);
      await scene.holds(third.sessionId, 1);
      expect(await scene.cursor(third.sessionId)).toBe(-1);
      scene.clock.advance(5000);
      await scene.reaches(third.sessionId, 3);
      expect(scene.gaps.all).toEqual([[1, 2]]);
      expect(await scene.cursor(sessionId)).toBe(1);
    },
  );

  verifies('HCP-212', 'a number absurdly far ahead is refused, and the stream goes on', async () => {
    await using scene = await Scene.open(stack());
    const { caller, sessionId } = await scene.following(3, { maxAhead: 100 });
    await scene.callee.events(sessionId, 104, 4);
    await scene.reaches(sessionId, 4);
    await caller.close();
    expect((await scene.buried()).map((text) => JSON.parse(text).payload.sequence)).toEqual([104]);
  });

  verifies(['V-129', 'HCP-224'], 'what comes behind the end is passed over, early or late', async () => {
    await using scene = await Scene.open(stack());
    const { caller, sessionId } = await scene.following(6);
    await scene.callee.event(sessionId, 9);
    await scene.holds(sessionId, 1);
    await scene.callee.event(sessionId, 7);
    await scene.callee.closed(sessionId, 8);
    await scene.callee.events(sessionId, 9, 10);
    await scene.reaches(sessionId, 8);
    await scene.holds(sessionId, 0);
    await caller.close();
    expect([scene.handled.all, await scene.cursor(sessionId)]).toEqual([[7, 8], 8]);
    expect(await scene.unacked()).toEqual([]);
  });

  verifies(['V-130', 'V-131', 'HCP-231'], 'transitions that are none are followed, and told as such', async () => {
    await using scene = await Scene.open(stack());
    const { session, sessionId } = await scene.following(1);
    await scene.callee.state(sessionId, 2, 'RUNNING', 'RUNNING', 'recovered_from_checkpoint');
    await scene.callee.state(sessionId, 3, 'RUNNING', 'COMPLETED', 'task_completed');
    await scene.callee.state(sessionId, 4, 'COMPLETED', 'RUNNING', 'resumed_by_callee');
    await scene.reaches(sessionId, 4);
    expect(session.state).toBe('RUNNING');
    const violations = scene.log.lines.all.filter((line) => line.includes('transition'));
    expect(violations.map((line) => JSON.parse(line).sequence)).toEqual([4]);
    await scene.callee.closed(sessionId, 5);
    await scene.callee.state(sessionId, 6, 'COMPLETED', 'RUNNING', 'resumed_by_callee');
    await scene.reaches(sessionId, 5);
    expect((await scene.row(sessionId)).state).toBe('COMPLETED');
  });
});
