import { describe, expect, it } from 'vitest';
import { HcpError } from '../../shared/errors.ts';
import { names, OutboxBench, SESSIONS } from '../support/outbox-bench.ts';
import { verifies } from '../support/verifies.ts';

const [A, B, C] = SESSIONS;

/** Lets the store be told, and waits until it was. */
async function flush(bench: OutboxBench): Promise<void> {
  const { calls } = bench.faulty;
  const before = calls.all.length;
  bench.clock.advance(1000);
  await calls.count(before + 1);
}

describe('what the outbox tells the store', () => {
  it('is told later, for all sessions at once', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    for (const session of [A, B, C]) await bench.open(session);
    for (const session of [A, B, C]) bench.add(session, 1, 50);
    await bench.outbox.drained();
    expect(bench.faulty.calls.all).toEqual([]);
    bench.clock.advance(999);
    expect(bench.faulty.calls.all).toEqual([]);
    await flush(bench);
    expect(bench.faulty.calls.all).toEqual([{ method: 'commit', size: 3 }]);
    for (const session of [A, B, C]) {
      expect(await bench.stored(session)).toMatchObject({ published_through: 50, active: 1 });
    }
    // Nothing new, nothing to tell.
    bench.clock.advance(10_000);
    bench.add(B, 51, 51);
    await bench.outbox.drained();
    await flush(bench);
    expect(bench.faulty.calls.all.slice(1)).toEqual([{ method: 'commit', size: 1 }]);
  });

  it('a session that is over and published needs no care any more', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    for (const session of [A, B]) await bench.open(session);
    bench.add(A, 1, 2, { closed: true });
    bench.add(B, 1, 2);
    await bench.outbox.drained();
    await flush(bench);
    expect(await bench.stored(A)).toMatchObject({ published_through: 2, active: null });
    expect(await bench.stored(B)).toMatchObject({ published_through: 2, active: 1 });
  });

  it('a session that is over stays active until its last message is published', async () => {
    await using bench = await OutboxBench.create();
    await bench.open(A);
    bench.intercept = async (text) => (text === 'a2' ? 'unroutable' : 'confirmed');
    bench.add(A, 1, 2, { closed: true });
    await bench.clock.asked(200);
    await flush(bench);
    expect(await bench.stored(A)).toMatchObject({ published_through: 1, active: 1 });
  });

  it('a recovered session that is over and has nothing left becomes inactive', async () => {
    await using bench = await OutboxBench.create();
    await bench.open(A, { epoch: 2, publishedThrough: 7 });
    bench.outbox.add(A, [], { closed: true });
    await flush(bench);
    expect(await bench.stored(A)).toMatchObject({ published_through: 7, active: null });
  });

  verifies('HCP-112', 'a session that somebody else has now is left to them, the others are not', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    for (const session of [A, B, C]) await bench.open(session);
    for (const session of [A, B, C]) bench.add(session, 1, 5);
    await bench.outbox.drained();
    await bench.store.commit([{ patch: 'sessions', key: [B], set: { epoch: 2, published_through: 3 } }]);
    await flush(bench);
    await bench.faulty.calls.count(2);
    await bench.outbox.close();
    expect(await bench.stored(A)).toMatchObject({ published_through: 5 });
    expect(await bench.stored(B)).toMatchObject({ published_through: 3, epoch: 2 });
    expect(await bench.stored(C)).toMatchObject({ published_through: 5 });
    bench.add(B, 6, 6);
    expect(bench.outbox.backlog).toBe(0);
  });

  it('a purged session disturbs nobody', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    for (const session of [A, B]) await bench.open(session);
    for (const session of [A, B]) bench.add(session, 1, 5, { closed: true });
    await bench.outbox.drained();
    await bench.store.commit([{ delete: 'sessions', key: [A] }]);
    await bench.outbox.close();
    expect(await bench.stored(A)).toBeUndefined();
    expect(await bench.stored(B)).toMatchObject({ published_through: 5, active: null });
  });

  it('is told again when the store did not answer', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    await bench.open(A);
    bench.add(A, 1, 5);
    await bench.outbox.drained();
    bench.faulty.beAway();
    await flush(bench);
    await bench.clock.asked(1000, 2);
    await flush(bench);
    expect(await bench.stored(A)).toMatchObject({ published_through: 5 });
    expect(bench.warnings(/could not be told/)).toHaveLength(1);
  });

  it('many sessions are told of in several commits', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    const sessions = Array.from({ length: 501 }, (_, index) => A.slice(0, -3) + String(index).padStart(3, '0'));
    for (const session of sessions) await bench.open(session);
    for (const session of sessions) bench.add(session, 1, 1);
    await bench.outbox.drained();
    await bench.outbox.close();
    expect(bench.faulty.calls.all.map(({ size }) => size)).toEqual([500, 1]);
    expect(await bench.stored(sessions.at(-1) as string)).toMatchObject({ published_through: 1 });
  });
});

describe('the room in the outbox', () => {
  it('ends at the bound: then tasks wait, and one warning says so', async () => {
    await using bench = await OutboxBench.create({ maxBacklog: 3 });
    for (const session of [A, B]) await bench.open(session);
    const confirms: (() => void)[] = [];
    bench.intercept = () => new Promise((resolve) => confirms.push(() => resolve('confirmed')));
    bench.add(A, 1, 2);
    await bench.outbox.room();
    bench.add(B, 1, 1);
    let waiting = 2;
    const waits = [1, 2].map(() => bench.outbox.room().then(() => waiting--));
    await new Promise((resolve) => setImmediate(resolve));
    expect(waiting).toBe(2);
    expect(bench.warnings(/tasks wait/)).toHaveLength(1);
    confirms[0]?.();
    await Promise.all(waits);
    expect(bench.warnings(/tasks wait/)).toHaveLength(1);
    // A second time is a second warning.
    bench.add(A, 3, 3);
    const again = bench.outbox.room();
    expect(bench.warnings(/tasks wait/)).toHaveLength(2);
    bench.outbox.drop(A);
    await again;
    expect(bench.outbox.backlog).toBe(1);
  });

  it('is not used up for ever by a session that is opened again', async () => {
    await using bench = await OutboxBench.create();
    await bench.open(A);
    bench.add(A, 1, 5);
    await bench.clock.asked(200);
    await bench.open(A, { epoch: 2 });
    expect(bench.outbox.backlog).toBe(0);
    await bench.listen();
    bench.add(A, 1, 5);
    await bench.outbox.drained();
    expect(await bench.arrived.count(5)).toEqual(names(A, 1, 5));
  });

  it('a former opening does not cost the present one its place', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    await bench.open(A);
    bench.add(A, 1, 2);
    await bench.outbox.drained();
    const { reached, release } = bench.faulty.hold();
    bench.clock.advance(1000);
    await reached;
    // Taken over by another and back, while the store is being told.
    await bench.open(A, { epoch: 3, publishedThrough: 2 });
    release();
    // What was told of the former opening met a conflict; the store is told of the rest without it.
    await bench.faulty.calls.count(2);
    bench.add(A, 3, 4);
    expect(await bench.arrived.count(4)).toEqual(names(A, 1, 4));
  });
});

describe('closing the outbox', () => {
  verifies('HCP-016', 'tells the store how far it got and publishes nothing more', async () => {
    await using bench = await OutboxBench.create();
    await bench.open(A);
    bench.intercept = async (text) => (text === 'a1' ? 'confirmed' : 'unroutable');
    bench.add(A, 1, 3);
    await bench.clock.asked(200);
    await bench.outbox.close();
    expect(await bench.stored(A)).toMatchObject({ published_through: 1, active: 1 });
    const sent = bench.sent.all.length;
    bench.clock.advance(60_000);
    bench.add(A, 4, 4);
    expect(bench.sent.all).toHaveLength(sent);
    await bench.outbox.close();
  });

  it('lets tasks go that wait for room', async () => {
    await using bench = await OutboxBench.create({ maxBacklog: 1 });
    await bench.open(A);
    bench.intercept = () => new Promise(() => {});
    bench.add(A, 1, 1);
    const room = bench.outbox.room();
    await bench.outbox.close();
    await room;
  });

  it('takes a closed transport for the end, not for a failure', async () => {
    await using bench = await OutboxBench.create();
    await bench.open(A);
    bench.intercept = async () => {
      throw new HcpError('transport_closed', 'Closed');
    };
    bench.add(A, 1, 3);
    await bench.outbox.close();
    expect(bench.lines.all).toEqual([]);
    expect(await bench.stored(A)).toMatchObject({ published_through: 0 });
  });

  it('survives a store that is away', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    await bench.open(A);
    bench.add(A, 1, 3);
    await bench.outbox.drained();
    bench.faulty.beAway();
    await bench.outbox.close();
    expect(bench.warnings(/could not be told/)).toHaveLength(1);
  });
});
