import { describe, expect, it } from 'vitest';
import type { SafetyEnvelope } from '../../schemas/types.ts';
import { judgeAction, procedureFor } from '../../session/envelope.ts';
import { verifies } from '../support/verifies.ts';

const OVEN: SafetyEnvelope = {
  parameters: {
    temperature: { min: -20, max: 250, unit: 'celsius' },
    pressure: { max: 5, unit: 'bar', hard_limit: false },
    depth: { min: 3, hard_limit: true },
  },
  prohibited_actions: ['open_door'],
};

/** In a word: `fine`, `soft …` or `hard …` with the conditions. */
function verdict(envelope: SafetyEnvelope, action: string, values: object): string {
  const { hard, soft } = judgeAction(envelope, action, values as Record<string, unknown>);
  if (hard) return `hard ${hard.condition}`;
  return soft.length > 0 ? `soft ${soft.map(({ condition }) => condition).join(' ')}` : 'fine';
}

/** An object as JSON makes it: `__proto__` is a name like any other. */
const json = (text: string) => JSON.parse(text);

describe('the safety envelope', () => {
  verifies('HCP-310', 'lets pass what is within its limits, the limits included', () => {
    for (const temperature of [-20, -0, 0, 249.999, 250]) expect(verdict(OVEN, 'heat', { temperature })).toBe('fine');
    expect(verdict(OVEN, 'dig', { depth: 3 })).toBe('fine');
    expect(verdict(OVEN, 'dig', { depth: Number.MAX_VALUE })).toBe('fine');
    expect(verdict(OVEN, 'press', { pressure: 5, unheard_of: 'anything' })).toBe('fine');
    expect(verdict(OVEN, 'wait', {})).toBe('fine');
    expect(verdict({}, 'heat', { temperature: 1e9 })).toBe('fine');
  });

  verifies('HCP-310', 'stops what is beyond either end of a limit, by however little', () => {
    for (const temperature of [250.000001, 1e300, Number.POSITIVE_INFINITY, -20.000001, Number.NEGATIVE_INFINITY]) {
      expect(verdict(OVEN, 'heat', { temperature })).toBe('hard temperature');
    }
    expect(verdict(OVEN, 'dig', { depth: 2.9 })).toBe('hard depth');
  });

  verifies('HCP-310', 'takes a limit for hard unless it says that it is not', () => {
    const limits = (hard_limit?: boolean) => ({
      parameters: { x: { max: 1, ...(hard_limit !== undefined && { hard_limit }) } },
    });
    expect([undefined, true, false].map((hard) => verdict(limits(hard), 'do', { x: 2 }))).toEqual([
      'hard x',
      'hard x',
      'soft x',
    ]);
  });

  verifies('HCP-310', 'takes what cannot be compared with its limit for beyond it', () => {
    for (const value of [
      Number.NaN,
      '100',
      '',
      null,
      undefined,
      true,
      [],
      [100],
      {},
      100n,
      new Date(100),
      Object(100),
    ]) {
      expect(verdict(OVEN, 'heat', { temperature: value })).toBe('hard temperature');
      expect(verdict(OVEN, 'press', { pressure: value })).toBe('soft pressure');
    }
  });

  it('says what is wrong, with the value and the limit', () => {
    expect(judgeAction(OVEN, 'heat', { temperature: 300 }).hard).toEqual({
      action: 'heat',
      condition: 'temperature',
      message: 'temperature would be 300 celsius, allowed are 250 celsius at most',
    });
    expect(judgeAction(OVEN, 'dig', { depth: 1 }).hard?.message).toBe('depth would be 1, allowed are 3 at least');
    expect(judgeAction(OVEN, 'heat', { temperature: 'a secret' }).hard?.message).toBe(
      'temperature is no number and cannot be held to its limit',
    );
  });

  verifies('HCP-310', 'one hard limit decides, however many soft ones are broken beside it', () => {
    expect(verdict(OVEN, 'cook', { pressure: 9, temperature: 300 })).toBe('hard temperature');
    expect(verdict(OVEN, 'cook', { pressure: 9, temperature: 200 })).toBe('soft pressure');
  });

  verifies('HCP-310', 'stops a prohibited action whatever its parameters', () => {
    expect(verdict(OVEN, 'open_door', {})).toBe('hard open_door');
    expect(verdict(OVEN, 'open_door', { temperature: 20 })).toBe('hard open_door');
    expect(verdict(OVEN, 'open_doors', {})).toBe('fine');
  });

  verifies('HCP-310', 'is not confused by names that every object has', () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']) {
      expect(verdict(OVEN, name, {})).toBe('fine');
      expect(verdict(OVEN, 'heat', json(`{"${name}": 1e9}`))).toBe('fine');
      const limited = json(`{"parameters": {"${name}": {"max": 1}}, "prohibited_actions": ["${name}"]}`);
      expect(verdict(limited, 'heat', {})).toBe('fine');
      expect(verdict(limited, 'heat', json(`{"${name}": 1}`))).toBe('fine');
      expect(verdict(limited, 'heat', json(`{"${name}": 2}`))).toBe(`hard ${name}`);
      expect(verdict(limited, name, {})).toBe(`hard ${name}`);
    }
  });

  verifies('HCP-310', 'sees parameters that are getters, hidden, or of objects without a prototype', () => {
    class Recipe {
      get temperature() {
        return 300;
      }
    }
    expect(verdict(OVEN, 'heat', new Recipe())).toBe('hard temperature');
    expect(verdict(OVEN, 'heat', Object.create({ temperature: 300 }))).toBe('hard temperature');
    expect(verdict(OVEN, 'heat', Object.defineProperty({}, 'temperature', { value: 300 }))).toBe('hard temperature');
    expect(verdict(OVEN, 'heat', Object.assign(Object.create(null), { temperature: 300 }))).toBe('hard temperature');
    expect(verdict(OVEN, 'heat', Object.assign(Object.create(null), { temperature: 30 }))).toBe('fine');
  });
});

describe('the emergency procedure of an envelope', () => {
  const violation = (condition: string) => ({ action: 'heat', condition, message: 'Too hot' });

  verifies('HCP-310', 'is that of the limit, else the default one, else none', () => {
    const procedures = { temperature: 'cool', default: 'shut_down' };
    expect(procedureFor({ emergency_procedures: procedures }, violation('temperature'))).toBe('cool');
    expect(procedureFor({ emergency_procedures: procedures }, violation('pressure'))).toBe('shut_down');
    expect(procedureFor({ emergency_procedures: { temperature: 'cool' } }, violation('pressure'))).toBeUndefined();
    expect(procedureFor({}, violation('temperature'))).toBeUndefined();
  });

  it('is not found under a name that every object has', () => {
    for (const condition of ['__proto__', 'constructor', 'toString']) {
      expect(procedureFor({ emergency_procedures: { temperature: 'cool' } }, violation(condition))).toBeUndefined();
      const named = json(`{"emergency_procedures": {"${condition}": "cool"}}`);
      expect(procedureFor(named, violation(condition))).toBe('cool');
    }
  });
});
