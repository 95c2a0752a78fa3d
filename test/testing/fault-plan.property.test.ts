import { describe, expect, it } from 'vitest';
import { acceptKnownCallers, createCallee } from '../../callee/index.ts';
import { createCaller, type EventHandler, openEventChannel } from '../../caller/index.ts';
import type { EventMessage } from '../../schemas/types.ts';
import { createKeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import { isHcpError } from '../../shared/errors.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import { createMemoryStore } from '../../shared/store/memory/index.ts';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { createFaultPlan, type FaultPlan, faultyStore, faultyTransport, ManualClock } from '../../testing/index.ts';
import { bothSides, enter, LEDGER_TABLES } from '../support/ledger.ts';
import { verifies } from '../support/verifies.ts';

const SEEDS = Number(process.env.HCP_RUNS ?? 200);
const STEPS = 6;
const RATES = {
  ...{ duplicate: 0.1, reorder: 0.1, drop: 0.08, delay: 0.08, crash: 0.08 },
  ...{ unavailable: 0.05, answerLost: 0.05 },
};
const LIMIT_MS = 20_000;
const HOUR_MS = 3_600_000;
/** The pumped clock runs ahead of work in other threads: nothing is given up because of that. */
const LONG = { graceMs: HOUR_MS, gapHoldMs: HOUR_MS, replayTimeoutMs: HOUR_MS, submitTimeoutMs: HOUR_MS };

const COUNT = {
  name: 'test.count',
  version: '1.0.0',
  description: 'Counts',
  input_schema: { type: 'object' },
  output_schema: { type: 'object' },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
} as const;
const TASK = { capability: COUNT.name, intent: 'Count', inputs: {} };
const keys = await createKeyRing([await generateKey('HS256')]);

/** A callee in a world in which everything that can go wrong does so by the plan. */
class FaultyWorld implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly plan: FaultPlan;
  readonly #store = createMemoryStore({ tables: LEDGER_TABLES, clock: this.clock });
  readonly #broker = new MemoryBroker();
  readonly #resources = new AsyncDisposableStack();

  constructor(seed: number) {
    this.plan = createFaultPlan({ ...RATES, seed, clock: this.clock });
  }

  static async open(seed: number): Promise<FaultyWorld> {
    const world = new FaultyWorld(seed);
    await world.pump(patiently(() => world.#startCallee()));
    return world;
  }

  /** Runs one task until its last event is processed. */
  async follow(onEvent: EventHandler): Promise<{ ledger: string[]; log: string[]; outcome: string }> {
    const store = faultyStore(this.#store, this.plan);
    const transport = await this.connect();
    const caller = createCaller({ callerId: 'alpha', transport, store, clock: this.clock, onEvent, ...LONG });
    this.#resources.use(caller);
    const session = await this.pump(patiently(() => caller.submit(TASK, { calleeId: 'lab' })));
    const { status: outcome } = await this.pump(session.result());
    await this.pump(this.#ended(String(session.sessionId)));
    return { ...(await bothSides(this.#store, String(session.sessionId))), outcome };
  }

  async connect(): Promise<Transport> {
    const transport = await connectMemory({ broker: this.#broker, closeTimeoutMs: 1 });
    return this.#resources.use(faultyTransport(transport, this.plan));
  }

  /** Lets time pass until it is done. */
  async pump<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const over = () => {
      isDone = true;
    };
    work.then(over, over);
    const giveUpAt = Date.now() + LIMIT_MS;
    while (!isDone) {
      if (Date.now() > giveUpAt) throw new Error(`Not done: ${this.plan}`);
      await turns(3);
      this.clock.advance(20);
    }
    return work.catch((error: unknown) => {
      throw new Error(String(this.plan), { cause: error });
    });
  }

  async #ended(sessionId: string): Promise<void> {
    for (;;) {
      const row = await this.#store.get('follows', ['alpha', sessionId]);
      if (row?.final_state) return;
      await turns(1);
    }
  }

  async #startCallee(): Promise<void> {
    const callee = createCallee({
      ...{ calleeId: 'lab', instanceId: 'lab-1', clock: this.clock, keys, policy: acceptKnownCallers(['alpha']) },
      ...{ transport: await this.connect(), store: faultyStore(this.#store, this.plan) },
    });
    callee.capability(COUNT, async (_, run) => {
      for (let i = 1; i <= STEPS; i++) await run.progress({ stage: 'counting', message: String(i) });
      return { outputs: {} };
    });
    this.#resources.use(callee);
    await callee.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pump(this.#resources.disposeAsync());
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Starting and submitting fail when the store is away: a program tries again. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isHcpError(error, 'store_unavailable') && !isHcpError(error, 'store_outcome_unknown')) throw error;
    }
  }
}

const nameOf = ({ message_id, payload }: EventMessage) => `${payload.sequence} ${message_id}`;

/** Whether somewhere among the first seeds an effect is missing, doubled or out of order. */
async function isCaught(effectsIn: (world: FaultyWorld) => Promise<string[]>): Promise<boolean> {
  for (let seed = 0; seed < 20; seed++) {
    await using world = await FaultyWorld.open(seed);
    const effects = await effectsIn(world);
    const sequences = effects.map((name) => Number(name.split(' ')[0]));
    if (sequences.some((sequence, index) => sequence !== index + 1)) return true;
  }
  return false;
}

describe('a fault plan', () => {
  verifies(
    ['HCP-208', 'HCP-209', 'V-102', 'V-103'],
    'does not move an exactly-once handler: whatever the seed, its effects are what the callee logged',
    async () => {
      const seen = new Set<string>();
      for (let seed = 0; seed < SEEDS; seed++) {
        await using world = await FaultyWorld.open(seed);
        const { ledger, log, outcome } = await world.follow(enter);
        expect(ledger, String(world.plan)).toEqual(log);
        expect(outcome, String(world.plan)).toBe('completed');
        expect(log.length).toBeGreaterThan(STEPS);
        for (const { fault } of world.plan.trace) seen.add(fault);
      }
      expect([...seen].sort()).toEqual(Object.keys(RATES).sort());
    },
    300_000,
  );

  it('catches a handler whose effect is outside of the transaction', async () => {
    const outside = async (world: FaultyWorld) => {
      const effects: string[] = [];
      await world.follow(async (event) => void effects.push(nameOf(event)));
      return effects;
    };
    expect(await isCaught(outside)).toBe(true);
  }, 60_000);

  it('catches a follower that takes every delivery for another event', async () => {
    const counting = async (world: FaultyWorld) => {
      const effects: string[] = [];
      const channel = openEventChannel({ callerId: 'alpha', transport: await world.connect() });
      const closed = Promise.withResolvers<void>();
      await channel.consume(async ({ message }) => {
        if (message.type !== 'event') return;
        effects.push(nameOf(message));
        if (message.payload.event_type === 'session_closed') closed.resolve();
      });
      const payload = { ...TASK, caller_id: 'alpha' };
      await channel.publish('lab', buildMessage({ type: 'task_submit', sessionId: null, senderId: 'alpha', payload }));
      await world.pump(closed.promise);
      return effects;
    };
    expect(await isCaught(counting)).toBe(true);
  }, 60_000);
});
