import { describe, expect, it } from 'vitest';
import { HcpError } from '../../shared/errors.ts';
import { names, OutboxBench, ofSession, SESSIONS, takenInOrder } from '../support/outbox-bench.ts';
import { Recorder } from '../support/recorder.ts';
import { verifies } from '../support/verifies.ts';

const [A, B, C] = SESSIONS;

/** Confirms that are kept back until asked for. */
function holdConfirms(bench: OutboxBench) {
  const held = new Recorder<{ text: string; release: () => void }>();
  bench.intercept = async (text, send) => {
    const outcome = await send();
    await new Promise<void>((release) => held.add({ text, release }));
    return outcome;
  };
  return {
    held,
    release(...texts: string[]) {
      for (const { text, release } of held.all) if (texts.includes(text)) release();
    },
    releaseAll() {
      bench.intercept = (_, send) => send();
      for (const { release } of held.all) release();
    },
  };
}

describe('the outbox, while all is well', () => {
  verifies('HCP-113', 'publishes each session in the order of its log', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    for (const session of [A, B, C]) await bench.open(session);
    for (let position = 1; position <= 300; position += 3) {
      for (const session of [A, B, C]) bench.add(session, position, position + 2);
    }
    await bench.arrived.count(900);
    for (const session of [A, B, C]) {
      expect(ofSession(session, bench.arrived.all)).toEqual(names(session, 1, 300));
    }
    await bench.outbox.drained();
    expect(bench.outbox.backlog).toBe(0);
  });

  it('has many under way at once, and not too many', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    await bench.open(A);
    const { held, release, releaseAll } = holdConfirms(bench);
    bench.add(A, 1, 300);
    await held.count(128);
    expect(bench.sent.all).toEqual(names(A, 1, 128));
    release('a1', 'a2');
    await bench.sent.count(130);
    expect(bench.sent.all).toHaveLength(130);
    await held.count(130);
    releaseAll();
    await bench.outbox.drained();
    expect(bench.sent.all).toEqual(names(A, 1, 300));
  });

  it('counts as published only what has nothing open in front of it', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    await bench.open(A);
    const { held, release, releaseAll } = holdConfirms(bench);
    bench.add(A, 1, 4);
    await held.count(4);
    release('a1', 'a2', 'a4');
    await bench.clock.asked(1000);
    bench.clock.advance(1000);
    await bench.outbox.close();
    expect(await bench.stored(A)).toMatchObject({ published_through: 2, active: 1 });
    expect(bench.outbox.backlog).toBe(2);
    releaseAll();
  });

  it('passes by places where there is nothing to publish', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    await bench.open(A, { epoch: 2 });
    bench.outbox.add(A, [{ position: 1, message: undefined }]);
    bench.add(A, 2, 3);
    bench.outbox.add(A, [{ position: 4, message: undefined }]);
    await bench.outbox.drained();
    await bench.outbox.close();
    expect(bench.sent.all).toEqual(['a2', 'a3']);
    expect(await bench.stored(A)).toMatchObject({ published_through: 4 });
  });

  it('takes more at once than a call has arguments', async () => {
    await using bench = await OutboxBench.create({ maxBacklog: 1_000_000 });
    await bench.open(A);
    bench.intercept = () => new Promise(() => {});
    bench.add(A, 1, 300_000);
    expect(bench.outbox.backlog).toBe(300_000);
  });
});

describe('the outbox, when the broker does not take a message', () => {
  verifies(['V-90', 'HCP-114'], 'keeps what has no queue and tries again, longer each time, until it has', async () => {
    await using bench = await OutboxBench.create();
    await bench.open(A);
    bench.add(A, 1, 3);
    for (const waitMs of [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]) {
      await bench.clock.asked(waitMs);
      expect(bench.outbox.backlog).toBe(3);
      bench.clock.advance(waitMs);
    }
    await bench.clock.asked(30_000, 2);
    await bench.listen();
    bench.clock.advance(30_000);
    expect(await bench.arrived.count(3)).toEqual(names(A, 1, 3));
    expect(bench.warnings(/Not published: kept/)).toHaveLength(10);
    // All is forgiven: the next failure waits as short as the first.
    await bench.outbox.drained();
    bench.intercept = async () => 'unroutable';
    bench.add(A, 4, 4);
    await bench.clock.asked(200, 2);
  });

  verifies(['HCP-008', 'HCP-113'], 'keeps what a full queue refused, and the order', async () => {
    await using bench = await OutboxBench.create();
    await bench.declare({ maxLength: 2 });
    await bench.open(A);
    bench.add(A, 1, 5);
    await bench.clock.asked(200);
    expect(bench.outbox.backlog).toBe(3);
    await bench.listen({ maxLength: 2 });
    // One at a time after a failure, so the caller's queue is not filled again at once.
    await bench.arrived.count(2);
    bench.clock.advance(200);
    await bench.outbox.drained();
    expect(takenInOrder(await bench.arrived.until((all) => all.includes('a5')))).toEqual([1, 2, 3, 4, 5]);
    expect(bench.warnings(/publish_refused/).length).toBeGreaterThan(0);
  });

  for (const failing of [1, 2, 3, 9, 10]) {
    verifies('HCP-113', `starts over at the one that failed, be it ${failing} of 10`, async () => {
      await using bench = await OutboxBench.create();
      await bench.listen();
      await bench.open(A);
      let failed = false;
      // The answer to the failed one comes last: those behind it have been confirmed by then.
      const others = Promise.withResolvers<void>();
      bench.intercept = async (text, send) => {
        if (text === `a${failing}` && !failed) {
          failed = true;
          await others.promise;
          throw new HcpError('publish_refused', 'The queue is full');
        }
        return send();
      };
      bench.add(A, 1, 10);
      await bench.arrived.count(9);
      others.resolve();
      await bench.clock.asked(200);
      bench.add(A, 11, 12);
      expect(bench.sent.all).toHaveLength(10);
      bench.clock.advance(200);
      await bench.outbox.drained();
      expect(takenInOrder(await bench.arrived.until((all) => all.includes('a12')))).toEqual(
        Array.from({ length: 12 }, (_, index) => index + 1),
      );
      // What is in front of it had been confirmed, and is not sent again.
      expect(bench.sent.all.slice(10)).toEqual(names(A, failing, 12));
    });
  }

  verifies('HCP-113', 'shows the caller a first time in order when all fail from one on', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    await bench.open(A);
    let isAway = false;
    bench.intercept = async (text, send) => {
      isAway ||= text === 'a4';
      if (isAway) throw new HcpError('publish_refused', 'No');
      return send();
    };
    bench.add(A, 1, 10);
    await bench.clock.asked(200);
    isAway = false;
    bench.intercept = (_, send) => send();
    bench.clock.advance(200);
    await bench.outbox.drained();
    expect([...new Set(await bench.arrived.count(10))]).toEqual(names(A, 1, 10));
  });

  it('ignores late answers to a try that was given up', async () => {
    await using bench = await OutboxBench.create();
    await bench.open(A);
    const late = Promise.withResolvers<'confirmed'>();
    bench.intercept = async (text) => (text === 'a1' ? 'unroutable' : late.promise);
    bench.add(A, 1, 3);
    await bench.clock.asked(200);
    late.resolve('confirmed');
    await bench.listen();
    bench.intercept = (_, send) => send();
    expect(bench.outbox.backlog).toBe(3);
    bench.clock.advance(200);
    expect(await bench.arrived.count(3)).toEqual(names(A, 1, 3));
  });

  it('goes on with the other sessions meanwhile', async () => {
    await using bench = await OutboxBench.create();
    await bench.listen();
    for (const session of [A, B]) await bench.open(session);
    bench.intercept = async (text, send) => (text.startsWith('a') ? 'unroutable' : send());
    bench.add(A, 1, 10);
    bench.add(B, 1, 200);
    expect(await bench.arrived.count(200)).toEqual(names(B, 1, 200));
    expect(bench.outbox.backlog).toBe(10);
  });

  it('publishes nothing more of a session that was dropped', async () => {
    await using bench = await OutboxBench.create();
    await bench.open(A);
    bench.add(A, 1, 10);
    await bench.clock.asked(200);
    bench.outbox.drop(A);
    expect(bench.outbox.backlog).toBe(0);
    bench.clock.advance(200);
    await new Promise((resolve) => setImmediate(resolve));
    expect(bench.sent.all).toEqual(names(A, 1, 10));
    bench.add(A, 11, 12);
    expect(bench.outbox.backlog).toBe(0);
  });
});
