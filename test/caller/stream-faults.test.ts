import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { Scene } from '../support/scene.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

describeOnStacks('a handler that fails', (stack) => {
  verifies(['V-111', 'V-113', 'HCP-219'], 'is tried again, while the events behind it wait', async () => {
    await using scene = await Scene.open(stack());
    const calls: number[] = [];
    let failures = 1;
    const { caller, sessionId } = await scene.following(3, {
      onEvent: ({ payload: { sequence } }) => {
        calls.push(sequence);
        if (sequence === 4 && failures-- > 0) throw new Error('Not now');
        scene.handled.add(sequence);
      },
    });
    await scene.callee.events(sessionId, 4, 5, 6);
    await scene.clock.asked(100);
    expect(await scene.cursor(sessionId)).toBe(3);
    scene.clock.advance(100);
    await scene.reaches(sessionId, 6);
    expect(scene.handled.all.slice(-3)).toEqual([4, 5, 6]);
    expect(calls.filter((sequence) => sequence === 4)).toHaveLength(2);
    await caller.close();
    expect([scene.parked.all, await scene.unacked(), await scene.buried()]).toEqual([[], [], []]);
  });

  verifies(['V-112', 'HCP-219'], 'always on one event loses only that: it is parked with its reason', async () => {
    await using scene = await Scene.open(stack());
    let tries = 0;
    const { caller, sessionId } = await scene.following(3, {
      onEvent: ({ payload: { sequence } }) => {
        if (sequence === 4) tries++;
        if (sequence === 4) throw new Error('Never');
        scene.handled.add(sequence);
      },
    });
    await scene.callee.events(sessionId, 4, 5);
    for (const pauseMs of [100, 200, 400, 800]) {
      await scene.clock.asked(pauseMs);
      scene.clock.advance(pauseMs);
    }
    await scene.reaches(sessionId, 5);
    expect([tries, scene.parked.all, scene.handled.all]).toEqual([5, [4], [5]]);
    const [row] = await scene.waitingRows(sessionId, 'failed');
    expect(row).toMatchObject({ sequence: 4, reason: 'Never' });
    expect(JSON.parse(String(row?.body)).payload.sequence).toBe(4);
    await caller.close();
    expect([await scene.unacked(), await scene.buried()]).toEqual([[], []]);
  });

  verifies('HCP-219', 'on an event that had to wait before is parked just so', async () => {
    await using scene = await Scene.open(stack());
    const { sessionId } = await scene.following(3, {
      maxAttempts: 1,
      onEvent: ({ payload: { sequence } }) => {
        if (sequence === 5) throw new Error('Never');
        scene.handled.add(sequence);
      },
    });
    await scene.callee.events(sessionId, 5, 6);
    await scene.holds(sessionId, 2);
    await scene.callee.event(sessionId, 4);
    await scene.reaches(sessionId, 6);
    expect(scene.parked.all).toEqual([5]);
    expect(await scene.waitingRows(sessionId)).toEqual([]);
    expect(await scene.waitingRows(sessionId, 'failed')).toHaveLength(1);
  });
});

describeOnStacks('odd messages in a stream', (stack) => {
  verifies('V-114', 'an event that breaks its schema is a dead letter, and spends its number', async () => {
    await using scene = await Scene.open(stack());
    const { caller, sessionId } = await scene.following(3);
    await scene.callee.odd(sessionId, { sequence: 4, data: { message: 'No stage' } });
    await scene.callee.event(sessionId, 5);
    await scene.reaches(sessionId, 5);
    expect([scene.handled.all, scene.invalid.all.length, scene.gaps.all]).toEqual([[5], 1, []]);
    await caller.close();
    expect((await scene.buried()).map((text) => JSON.parse(text).payload.sequence)).toEqual([4]);
  });

  verifies('V-114', 'an invalid event that comes early waits for its turn like any other', async () => {
    await using scene = await Scene.open(stack());
    const { sessionId } = await scene.following(3);
    await scene.callee.odd(sessionId, { sequence: 5, data: { message: 'No stage' } });
    await scene.callee.event(sessionId, 6);
    await scene.holds(sessionId, 2);
    await scene.callee.event(sessionId, 4);
    await scene.reaches(sessionId, 6);
    expect([scene.handled.all, scene.gaps.all]).toEqual([[4, 6], []]);
  });

  verifies('V-115', 'a sequence that is no number of an event is a dead letter, and moves nothing', async () => {
    await using scene = await Scene.open(stack());
    const { caller, sessionId } = await scene.following(3);
    for (const sequence of ['4', 4.5, -1]) await scene.callee.odd(sessionId, { sequence });
    await scene.invalid.count(3);
    expect(await scene.cursor(sessionId)).toBe(3);
    await scene.callee.event(sessionId, 4);
    await scene.reaches(sessionId, 4);
    await caller.close();
    expect(await scene.buried()).toHaveLength(3);
  });

  verifies(['V-116', 'HCP-222'], 'an event of a type nobody knows is handled like any other', async () => {
    await using scene = await Scene.open(stack());
    const types: string[] = [];
    const { sessionId } = await scene.following(3, { onEvent: ({ payload }) => void types.push(payload.event_type) });
    await scene.callee.odd(sessionId, { sequence: 4, event_type: 'tool_start', data: { tool: 'oven' } });
    await scene.reaches(sessionId, 4);
    expect(types.at(-1)).toBe('tool_start');
  });

  verifies(
    ['V-117', 'V-118'],
    'an unknown type is passed over, what is no JSON a dead letter; the stream goes on',
    async () => {
      await using scene = await Scene.open(stack());
      const { caller, sessionId } = await scene.following(3);
      await scene.callee.odd(sessionId, { sequence: 4 }, { type: 'task_paused' });
      await scene.callee.raw(sessionId, Buffer.from('{"hcp_version": '));
      await scene.invalid.count(2);
      expect(await scene.cursor(sessionId)).toBe(3);
      await scene.callee.event(sessionId, 4);
      await scene.reaches(sessionId, 4);
      expect(scene.handled.all).toEqual([4]);
      await caller.close();
      expect([await scene.unacked(), await scene.buried()]).toEqual([[], ['{"hcp_version": ']]);
    },
  );

  verifies(
    'V-119',
    'an event of another major version is refused; what it leaves is a gap like any other',
    async () => {
      await using scene = await Scene.open(stack());
      const { caller, sessionId } = await scene.following(3);
      await scene.callee.odd(sessionId, { sequence: 4 }, { hcp_version: '2.0' });
      await scene.callee.event(sessionId, 5);
      await scene.holds(sessionId, 1);
      expect(scene.invalid.all).toEqual(['unsupported_version']);
      scene.clock.advance(5000);
      await scene.reaches(sessionId, 5);
      expect([scene.handled.all, scene.gaps.all]).toEqual([[5], [[4, 4]]]);
      await caller.close();
      expect(await scene.buried()).toHaveLength(1);
    },
  );

  verifies(['V-120', 'HCP-223'], 'an event of a session nobody follows is told and acked', async () => {
    await using scene = await Scene.open(stack());
    const { caller } = await scene.following(1);
    await scene.callee.event(randomUUID(), 1);
    await scene.orphans.count(1);
    await caller.close();
    expect([await scene.unacked(), await scene.buried()]).toEqual([[], []]);
  });
});
