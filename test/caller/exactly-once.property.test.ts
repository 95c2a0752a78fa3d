import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { type Caller, createCaller } from '../../caller/index.ts';
import type { EventMessage } from '../../schemas/types.ts';
import { createMemoryStore, MemoryData } from '../../shared/store/memory/index.ts';
import type { Store, StoreTransaction } from '../../shared/store/store.ts';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { FakeCallee } from '../support/fake-callee.ts';
import { enter, entries, inOrder, LEDGER_TABLES } from '../support/ledger.ts';
import { verifies } from '../support/verifies.ts';

const HOUR_MS = 3_600_000;
const LENGTH = 12;
const SESSIONS = 2;

/** What happens, in the order it is drawn. Events that are never drawn are lost. */
const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('deliver' as const),
      session: fc.nat(SESSIONS - 1),
      sequence: fc.integer({ min: 1, max: LENGTH }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('turn' as const), turns: fc.nat(8) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('fail' as const), times: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('crash' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A store that stops in the middle of everything, with the process that uses it. */
class MortalStore {
  readonly store: Store;
  #isDead = false;

  constructor(inner: Store) {
    this.store = {
      ...inner,
      get: (...args) => this.#while(inner.get(...args)),
      scan: (...args) => this.#while(inner.scan(...args)),
      commit: (writes) => (this.#isDead ? new Promise(() => {}) : this.#while(inner.commit(writes))),
      transaction: <T>(work: (tx: StoreTransaction) => Promise<T>) =>
        this.#while(
          inner.transaction(async (tx) => {
            const result = await work(tx);
            if (this.#isDead) throw new Error('The process died before its commit');
            return result;
          }),
        ),
    };
  }

  die(): void {
    this.#isDead = true;
  }

  /** The dead hear no answer. */
  #while<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(
        (value) => this.#isDead || resolve(value),
        (error: unknown) => this.#isDead || reject(error),
      );
    });
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** One caller after another on the same store and broker, until the story ends. */
class Story {
  readonly #broker = new MemoryBroker();
  readonly #data = new MemoryData();
  readonly #clock = new ManualClock();
  readonly #store = createMemoryStore({ data: this.#data, tables: LEDGER_TABLES });
  readonly #delivered: Set<number>[] = [];
  #callee!: FakeCallee;
  #sessions: string[] = [];
  #crash: () => Promise<void> = async () => {};
  #failures = 0;

  async play(steps: readonly Step[]): Promise<void> {
    this.#callee = await FakeCallee.listen(await connectMemory({ broker: this.#broker }), 'alpha');
    const caller = await this.#live();
    for (let session = 0; session < SESSIONS; session++) {
      const task = { capability: 'test.task', intent: 'Do it', inputs: {} };
      const { sessionId } = await caller.submit(task, { calleeId: this.#callee.calleeId });
      if (sessionId !== undefined) this.#sessions.push(sessionId);
      this.#delivered.push(new Set());
    }
    for (const each of steps) await this.#do(each);
    await this.#finish();
    await this.#crash();
  }

  async #do(step: Step): Promise<void> {
    switch (step.do) {
      case 'deliver':
        this.#delivered[step.session]?.add(step.sequence);
        return this.#callee.event(String(this.#sessions[step.session]), step.sequence);
      case 'turn':
        return turns(step.turns);
      case 'fail':
        this.#failures = step.times;
        return;
      case 'cut':
        return this.#broker.cutLinks();
      case 'crash':
        await this.#crash();
        await this.#live();
    }
  }

  async #live(): Promise<Caller> {
    const transport = await connectMemory({ broker: this.#broker, closeTimeoutMs: 1 });
    const mortal = new MortalStore(createMemoryStore({ data: this.#data, tables: LEDGER_TABLES }));
    const onEvent = async (event: EventMessage, tx: StoreTransaction) => {
      await enter(event, tx);
      if (this.#failures > 0) {
        this.#failures--;
        throw new Error('Not now');
      }
    };
    const caller = createCaller({
      ...{ callerId: 'alpha', transport, store: mortal.store, clock: this.#clock, onEvent },
      gapHoldMs: HOUR_MS,
      maxAttempts: 1000,
    });
    this.#crash = async () => {
      mortal.die();
      await transport.close();
    };
    await caller.start();
    return caller;
  }

  /** Everything that was delivered is processed; then what is missing is given up. */
  async #finish(): Promise<void> {
    for (let round = 0; round < 2000; round++) {
      if (await this.#isDone()) return;
      await turns(5);
      // First what waits for another try, then what waits for the lost.
      this.#clock.advance(round < 100 ? 100 : HOUR_MS);
    }
    throw new Error(`Not done: ${JSON.stringify(await this.#told())}`);
  }

  async #isDone(): Promise<boolean> {
    const told = await this.#told();
    return told.every(({ cursor }, session) => cursor === Math.max(-1, ...(this.#delivered[session] ?? [])));
  }

  async #told(): Promise<{ cursor: number; holes: unknown }[]> {
    const rows = this.#sessions.map((sessionId) => this.#store.get('follows', ['alpha', sessionId]));
    return (await Promise.all(rows)).map((row) => ({
      cursor: Number(row?.last_processed_sequence),
      holes: JSON.parse(String(row?.holes)),
    }));
  }

  async check(): Promise<void> {
    for (const [session, { holes }] of (await this.#told()).entries()) {
      const delivered = [...(this.#delivered[session] ?? [])].sort((a, b) => a - b);
      expect(await entries(this.#store, String(this.#sessions[session]))).toEqual(inOrder(delivered));
      expect(numbers(holes)).toEqual(missing(delivered));
      const left = await this.#store.scan('parked', 'key', { where: ['alpha', String(this.#sessions[session])] });
      expect(left).toEqual([]);
    }
  }
}

function numbers(holes: unknown): number[] {
  const ranges = holes as [number, number][]; // written by the caller
  return ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, index) => from + index));
}

function missing(delivered: readonly number[]): number[] {
  const last = delivered.at(-1) ?? 0;
  return Array.from({ length: last }, (_, index) => index + 1).filter((sequence) => !delivered.includes(sequence));
}

describe('exactly once', () => {
  verifies(
    ['HCP-209', 'HCP-215', 'HCP-216', 'V-102', 'V-103'],
    'whatever is repeated, reordered, lost, failed or killed: each delivered event is processed once and in order',
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), async (steps) => {
          const story = new Story();
          await story.play(steps);
          await story.check();
        }),
        { numRuns: Number(process.env.HCP_RUNS ?? 150) },
      );
    },
    120_000,
  );
});
