import { describe, expect, it } from 'vitest';
import { isHcpError } from '../../shared/errors.ts';
import { createMemoryStore } from '../../shared/store/memory/index.ts';
import { connectMemory } from '../../shared/transport/memory/index.ts';
import { commandQueue, commandRoute, deadLetterQueue } from '../../shared/transport/topology.ts';
import type { Delivery } from '../../shared/transport/transport.ts';
import {
  createFaultPlan,
  type FaultPlanOptions,
  faultyStore,
  faultyTransport,
  ManualClock,
  transportContract,
} from '../../testing/index.ts';
import { LEDGER_TABLES } from '../support/ledger.ts';
import { memoryFixture } from '../support/memory-harness.ts';
import { Recorder } from '../support/recorder.ts';

const QUEUE = commandQueue('lab');

/** One queue under a plan; what its consumer gets is told by its text. */
async function queueUnder(options: FaultPlanOptions, onDelivery: (delivery: Delivery) => void = (it) => it.ack()) {
  const clock = new ManualClock();
  const plan = createFaultPlan({ clock, ...options });
  const inner = await connectMemory();
  const transport = faultyTransport(inner, plan);
  const got = new Recorder<string>();
  const interrupted = new Recorder<string>();
  const consumer = await transport.consume(
    QUEUE,
    (delivery) => {
      got.add(Buffer.from(delivery.body).toString());
      onDelivery(delivery);
    },
    { onInterrupted: ({ code }) => interrupted.add(code) },
  );
  const send = async (...texts: string[]) => {
    for (const text of texts) {
      const properties = { type: 'task_submit', messageId: text };
      await transport.publish({ route: commandRoute('lab'), body: Buffer.from(text), properties });
    }
  };
  return { clock, plan, inner, transport, consumer, got, interrupted, send, [Symbol.asyncDispose]: transport.close };
}

describe('a faulty transport', () => {
  it('hands a message over twice', async () => {
    await using queue = await queueUnder({ duplicate: 1 });
    await queue.send('a', 'b');
    expect(await queue.got.count(4)).toEqual(['a', 'a', 'b', 'b']);
  });

  it('holds a message back until another has overtaken it', async () => {
    // Of this seed the first message is held back, and no other of the first four.
    const seed = seedWhere({ reorder: 0.2 }, ['reorder', undefined, undefined, undefined]);
    await using queue = await queueUnder({ reorder: 0.2, seed });
    await queue.send('a', 'b', 'c', 'd');
    const got = await queue.got.count(4);
    expect([...got].sort()).toEqual(['a', 'b', 'c', 'd']);
    expect(got[0]).toBe('b');
  });

  it('lets what it holds back go in time when nothing comes to overtake it', async () => {
    await using queue = await queueUnder({ reorder: 1, maxDelayMs: 50 });
    await queue.send('a');
    await turns();
    expect(queue.got.all).toEqual([]);
    queue.clock.advance(50);
    expect(queue.got.all).toEqual(['a']);
  });

  it('delays a message together with those behind it', async () => {
    const seed = seedWhere({ delay: 0.2 }, ['delay', undefined, undefined]);
    await using queue = await queueUnder({ delay: 0.2, seed, maxDelayMs: 50 });
    await queue.send('a', 'b', 'c');
    await turns();
    expect(queue.got.all).toEqual([]);
    queue.clock.advance(50);
    expect(queue.got.all).toEqual(['a', 'b', 'c']);
  });

  it('drops no message for good, even where it drops whatever it may', async () => {
    await using queue = await queueUnder({ drop: 1 });
    await queue.send('a', 'b');
    expect([...(await queue.got.count(2))].sort()).toEqual(['a', 'b']);
    expect(queue.plan.trace.length).toBeGreaterThanOrEqual(20);
    const dead = new Recorder<Delivery>();
    await queue.inner.consume(deadLetterQueue(QUEUE), dead.add);
    await turns();
    expect(dead.all).toEqual([]);
  });

  it('voids what is in hand when it cuts the link, tells so, and brings it again', async () => {
    const seed = seedWhere({ crash: 0.2 }, [undefined, 'crash', undefined, undefined]);
    const settled: Delivery[] = [];
    await using queue = await queueUnder({ crash: 0.2, seed }, (delivery) => void settled.push(delivery));
    await queue.send('a', 'b');
    expect([...(await queue.got.count(4))].sort()).toEqual(['a', 'a', 'b', 'b']);
    expect(queue.interrupted.all).toEqual(['transport_lost']);
    for (const delivery of settled.slice(0, 2)) delivery.ack(); // void by now
    await queue.consumer.close();
    const left = new Recorder<string>();
    await queue.inner.consume(QUEUE, ({ body }) => left.add(Buffer.from(body).toString()));
    expect(await left.count(2)).toEqual(['a', 'b']);
  });

  it('gives back what it still holds when it is closed', async () => {
    const queue = await queueUnder({ reorder: 1 });
    await queue.send('a');
    await turns();
    await queue.consumer.close();
    const left = new Recorder<string>();
    await queue.inner.consume(QUEUE, ({ body }) => left.add(Buffer.from(body).toString()));
    expect(await left.count(1)).toEqual(['a']);
    await queue.transport.close();
  });
});

describe('a faulty transport with a plan of no faults keeps the contract', async () => {
  const harness = await memoryFixture().start();
  const calm = createFaultPlan({ duplicate: 0 });
  const wrapped = {
    adapter: 'faulty',
    open: async (...args: Parameters<typeof harness.open>) => faultyTransport(await harness.open(...args), calm),
    otherLogin: harness.otherLogin,
    faults: harness.faults,
  };
  for (const { name, timeLimitMs, run } of transportContract(wrapped)) it(name, run, timeLimitMs);
});

describe('a faulty store', () => {
  const row = { session_id: 's', sequence: 1, after: 0, message_id: 'm' };
  const key = ['s', 1];

  it('does not write when it is away, and rolls a transaction back at its end', async () => {
    const inner = createMemoryStore({ tables: LEDGER_TABLES });
    const store = faultyStore(inner, createFaultPlan({ unavailable: 1 }));
    await expect(store.commit([{ insert: 'ledger', row }])).rejects.toSatisfy((e) =>
      isHcpError(e, 'store_unavailable'),
    );
    let isDone = false;
    const transaction = store.transaction(async (tx) => {
      await tx.write([{ insert: 'ledger', row }]);
      isDone = true;
    });
    await expect(transaction).rejects.toSatisfy((error) => isHcpError(error, 'store_unavailable'));
    expect([isDone, await inner.get('ledger', key)]).toEqual([true, undefined]);
  });

  it('writes and does not tell when the answer is lost', async () => {
    const inner = createMemoryStore({ tables: LEDGER_TABLES });
    const plan = createFaultPlan({ answerLost: 1 });
    const store = faultyStore(inner, plan);
    const lost = (error: unknown) => isHcpError(error, 'store_outcome_unknown');
    await expect(store.commit([{ insert: 'ledger', row }])).rejects.toSatisfy(lost);
    expect(await inner.get('ledger', key)).toEqual(row);
    expect(plan.trace).toEqual([{ place: 'store.commit', number: 1, fault: 'answerLost', subject: '1 writes' }]);
  });
});

describe('a fault plan', () => {
  const decisions = (options: FaultPlanOptions, places: readonly string[]) => {
    const plan = createFaultPlan(options);
    return places.map((place) => [place, plan.decide(place, 'it', ['duplicate', 'drop']).fault].join(' '));
  };

  it('decides the same for the same seed, place by place, whatever happens elsewhere', () => {
    const options = { seed: 7, duplicate: 0.3, drop: 0.3 };
    const alone = decisions(options, Array(50).fill('a'));
    const mixed = decisions(options, Array(50).fill(['b', 'a', 'c']).flat());
    expect(mixed.filter((decision) => decision.startsWith('a'))).toEqual(alone);
    expect(new Set(alone).size).toBe(3);
    expect(decisions({ ...options, seed: 8 }, Array(50).fill('a'))).not.toEqual(alone);
  });

  it('tells its seed and what it did', () => {
    const plan = createFaultPlan({ duplicate: 1, seed: 42 });
    plan.decide('hcp.evt.alpha', 'event 1', ['duplicate']);
    expect(String(plan)).toBe('fault plan with seed 42, 1 faults\n  hcp.evt.alpha #1 duplicate: event 1');
    expect(createFaultPlan().seed).not.toBe(createFaultPlan().seed);
  });

  it('does a little of everything unless told, and then only what it is told', () => {
    const faults = (options: FaultPlanOptions) => {
      const plan = createFaultPlan({ seed: 1, ...options });
      for (let i = 0; i < 1000; i++) plan.decide('queue', 'it', ['duplicate', 'reorder', 'drop', 'delay', 'crash']);
      return [...new Set(plan.trace.map(({ fault }) => fault))].sort();
    };
    expect(faults({})).toEqual(['crash', 'delay', 'drop', 'duplicate', 'reorder']);
    expect(faults({ drop: 0.1 })).toEqual(['drop']);
  });

  it.each([
    [{ duplicate: 2 }, 'duplicate must be a number from 0 to 1, but is 2'],
    [{ duplicate: 0.6, drop: 0.6 }, 'duplicate, reorder, drop, delay, crash must be 1 together at most, but are 1.2'],
    [{ seed: -1 }, 'seed must be an integer from 0 to 4294967295, but is -1'],
    [{ duplicates: 1 }, 'Unknown option duplicates; did you mean duplicate?'],
  ])('refuses %j', (options, sentence) => {
    expect(() => createFaultPlan(options as FaultPlanOptions)).toThrow(new TypeError(sentence));
  });
});

/** A seed that begins with these decisions at the queue. */
function seedWhere(rates: FaultPlanOptions, wanted: readonly (string | undefined)[]): number {
  for (let seed = 0; ; seed++) {
    const plan = createFaultPlan({ ...rates, seed });
    const faults = ['duplicate', 'reorder', 'drop', 'delay', 'crash'] as const;
    if (wanted.every((fault) => plan.decide(QUEUE.name, '', faults).fault === fault)) return seed;
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}
