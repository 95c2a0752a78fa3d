import { describe, expect } from 'vitest';
import { guardOf } from '../../callee/guard.ts';
import type { SafetyEnvelope } from '../../schemas/types.ts';
import { newRecord, type Violation } from '../../session/record.ts';
import { isHcpError } from '../../shared/errors.ts';
import { serveFurnace } from '../support/furnace.ts';
import { type SeededRandom, seededRandom } from '../support/random.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const ACTIONS = Number(process.env.HCP_FUZZ ?? 40_000);
const SESSIONS = 40;
const NAMES = ['temperature', 'pressure', 'flow', '__proto__', 'constructor', 'toString', 'ünïcode', 'a.b', '$where'];
const DEEDS = ['heat', 'open_door', 'vent', '__proto__', 'constructor', 'toString'];

const pick = <T>(random: SeededRandom, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T; // never empty

/** Own properties, whatever they are called. */
const object = (entries: readonly (readonly [string, unknown])[]): Record<string, unknown> =>
  entries.reduce(
    (made, [name, value]) =>
      Object.defineProperty(made, name, { value, enumerable: true, configurable: true, writable: true }),
    {},
  );

function randomEnvelope(random: SeededRandom): SafetyEnvelope {
  const limits = NAMES.filter(() => random() < 0.5).map((name) => {
    const [low, high] = [random() * 200 - 100, random() * 200 - 100].sort((a, b) => a - b);
    const bounds = pick(random, [{ max: high }, { min: low }, { min: low, max: high }, { min: high, max: high }]);
    return [name, { ...bounds, ...pick(random, [{}, {}, { hard_limit: true }, { hard_limit: false }]) }] as const;
  });
  // Just built in its shape.
  return {
    parameters: object(limits) as SafetyEnvelope['parameters'],
    prohibited_actions: DEEDS.filter(() => random() < 0.2),
  } as SafetyEnvelope;
}

function randomValue(random: SeededRandom, envelope: SafetyEnvelope, name: string): unknown {
  const limit = Object.entries(envelope.parameters ?? {}).find(([known]) => known === name)?.[1];
  const bound = pick(random, [limit?.max, limit?.min].filter((value) => value !== undefined).concat(0));
  const odd = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, '5', null, undefined, {}, [1], true, -0];
  const roll = random();
  if (roll < 0.15) return pick(random, odd);
  // On the edge, and the next numbers on either side of it.
  if (roll < 0.45) return bound + pick(random, [0, 1, -1]) * Math.max(Math.abs(bound), 1e-300) * Number.EPSILON;
  return random() * 240 - 120;
}

/** What the protocol says of an action, written without a look at how it is enforced. */
function oracle(envelope: SafetyEnvelope, deed: string, values: Record<string, unknown>): 'stop' | number {
  for (const prohibited of envelope.prohibited_actions ?? []) if (prohibited === deed) return 'stop';
  let soft = 0;
  for (const [name, { min, max, hard_limit }] of Object.entries(envelope.parameters ?? {})) {
    const given = Object.getOwnPropertyDescriptor(values, name);
    if (given === undefined) continue;
    const within =
      typeof given.value === 'number' &&
      given.value >= (min ?? Number.NEGATIVE_INFINITY) &&
      given.value <= (max ?? Number.POSITIVE_INFINITY);
    if (within) continue;
    if (hard_limit === false) soft++;
    else return 'stop';
  }
  return soft;
}

describe('a guard against random actions', () => {
  verifies(
    ['HCP-310', 'V-26', 'V-27'],
    `stops every one of ${ACTIONS} that it must stop, and no other`,
    async () => {
      const random = seededRandom('HCP_SEED');
      const counts = { stopped: 0, warned: 0, passed: 0 };
      for (let i = 0; i < ACTIONS; i++) {
        const safetyEnvelope = randomEnvelope(random);
        const warned: Violation[] = [];
        const violated: Violation[] = [];
        const record = newRecord({
          ...{ sessionId: 's', calleeId: 'lab', callerId: 'alpha', messageId: 'm', owner: 'one', epoch: 1 },
          ...{ request: '{}', trace: '{}', createdAt: 0, state: 'RUNNING', riskLevel: 'R2', safetyEnvelope },
        });
        const guard = guardOf({
          record: () => record,
          signal: new AbortController().signal,
          unpaused: async () => {},
          checkToken: async () => {},
          warn: async (violation) => void warned.push(violation),
          violate: async (violation) => void violated.push(violation),
        });
        const deed = pick(random, DEEDS);
        const given = NAMES.filter(() => random() < 0.3);
        const values = object(given.map((name) => [name, randomValue(random, safetyEnvelope, name)] as const));
        const expected = oracle(safetyEnvelope, deed, values);
        const outcome = await guard.act(deed, values).then(
          () => 'done',
          (error: unknown) => (isHcpError(error, 'safety_violation') ? 'stop' : error),
        );
        const story = { seed: random.seed, i, deed, values, safetyEnvelope };
        expect({ ...story, outcome: outcome === 'done' ? warned.length : outcome }).toEqual({
          ...story,
          outcome: expected,
        });
        expect(violated.length).toBe(expected === 'stop' ? 1 : 0);
        counts[expected === 'stop' ? 'stopped' : expected > 0 ? 'warned' : 'passed']++;
      }
      console.log(`guard: ${JSON.stringify(counts)} (seed ${random.seed})`);
      // Otherwise the chances are badly mixed, and little is proven.
      for (const count of Object.values(counts)) expect(count).toBeGreaterThan(ACTIONS / 50);
    },
    120_000,
  );
});

/** Would be destroyed by what the envelope forbids. */
class SimulatedFurnace {
  temperature = 20;
  isCooled = false;

  heat(temperature: number): void {
    if (this.isCooled) throw new Error('Driven after the emergency');
    if (!(temperature >= 0 && temperature <= 1000)) throw new Error(`Driven to ${temperature}: destroyed`);
    this.temperature = temperature;
  }
}

describeOnStacks('a furnace driven at random', (stack) => {
  verifies(
    ['HCP-310', 'V-27'],
    `is never driven beyond its limit in ${SESSIONS} sessions, and each one that tries ends`,
    async () => {
      await using world = await World.create(stack());
      const random = seededRandom('HCP_SEED');
      const furnaces = new Map<string, SimulatedFurnace>();
      const destroyed: unknown[] = [];
      const furnaceOf = (sessionId: string) => {
        const furnace = furnaces.get(sessionId) ?? new SimulatedFurnace();
        furnaces.set(sessionId, furnace);
        return furnace;
      };
      await serveFurnace(
        world,
        async ({ inputs }, run) => {
          const furnace = furnaceOf(run.sessionId);
          const drive = async (temperature: number) => {
            await run.guard.act('heat', { temperature });
            try {
              furnace.heat(temperature);
            } catch (error) {
              destroyed.push(error);
            }
          };
          const plan = inputs.plan as number[];
          if (inputs.atOnce) await Promise.all(plan.map(drive));
          else for (const temperature of plan) await drive(temperature);
          return { outputs: {} };
        },
        {
          procedures: {
            cool: (_, run) => {
              furnaceOf(run.sessionId).isCooled = true;
            },
          },
          prefetch: 50,
        },
      );
      const expected = new Map<string, string>();
      for (let i = 0; i < SESSIONS; i++) {
        const plan = Array.from({ length: 1 + Math.floor(random() * 12) }, () => Math.round(random() * 1150 - 50));
        const isSafe = plan.every((temperature) => temperature >= 0 && temperature <= 1000);
        const messageId = await world.submit({ inputs: { plan, atOnce: random() < 0.3 } });
        expected.set(messageId, isSafe ? 'closed COMPLETED task_completed' : 'closed FAILED safety_violation');
      }
      const submitOf = new Map<unknown, string>();
      const ended = new Map<string | undefined, string>();
      while (ended.size < SESSIONS) {
        const message = await world.next();
        if (message.type === 'task_accepted') submitOf.set(message.session_id, String(message.payload.in_reply_to));
        const closed = /closed .*/.exec(tell(message))?.[0];
        if (closed) ended.set(submitOf.get(message.session_id), closed);
      }
      expect([destroyed, `seed ${random.seed}`]).toEqual([[], `seed ${random.seed}`]);
      expect(Object.fromEntries(ended), `seed ${random.seed}`).toEqual(Object.fromEntries(expected));
      expect(new Set(expected.values()).size, `seed ${random.seed}`).toBe(2);
    },
    120_000,
  );
});
