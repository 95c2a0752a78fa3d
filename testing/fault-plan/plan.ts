import { type Clock, systemClock } from '../../shared/clock.ts';
import {
  fractionOption,
  integerOption,
  LONGEST_TIMER_MS,
  methodsOption,
  refuseUnknownOptions,
} from '../../shared/option-checks.ts';
import { seededNumbers, seedFor } from './random.ts';

/** How likely each fault is, from 0 to 1, at each delivery or each write. */
export interface FaultRates {
  /** It is handed over twice, as when a publisher sent it again. */
  readonly duplicate: number;
  /** It is held back until others have overtaken it. */
  readonly reorder: number;
  /** The link is gone before it is handed over: it comes again, and so does all that is in hand. */
  readonly drop: number;
  /** It comes late, and what is behind it too. */
  readonly delay: number;
  /** The link is gone once it is handed over: it cannot be settled any more and comes again, and so does all that is in hand. */
  readonly crash: number;
  /** A write does not reach the store: `store_unavailable`. */
  readonly unavailable: number;
  /** A write is done, and nobody hears of it: `store_outcome_unknown`. */
  readonly answerLost: number;
}

export type Fault = keyof FaultRates;

export interface FaultPlanOptions extends Partial<FaultRates> {
  /** Which faults, and when. @default chance */
  readonly seed?: number;
  /** How long something is delayed or held back at most. @default 20 */
  readonly maxDelayMs?: number;
  /** Whose time delays are. @default the machine's clock */
  readonly clock?: Clock;
}

/** Something the plan did. */
export interface DoneFault {
  /** The queue, or the store's method. */
  readonly place: string;
  /** The how manieth there, from 1. */
  readonly number: number;
  readonly fault: Fault;
  /** What it was done to. */
  readonly subject: string;
}

/** Faults to come, by chance that can be repeated. As text it tells its seed and what it did. */
export interface FaultPlan {
  readonly seed: number;
  readonly maxDelayMs: number;
  readonly clock: Clock;
  /** What it did so far, in order. */
  readonly trace: readonly DoneFault[];
  /** What happens to the next thing at this place, one of `faults` or nothing; `share`, from 0 to below 1, says how much. */
  decide(
    place: string,
    subject: string,
    faults: readonly Fault[],
    may?: (fault: Fault) => boolean,
  ): { readonly fault: Fault | undefined; readonly share: number };
  toString(): string;
}

/** What may happen to a delivery. */
export const DELIVERY_FAULTS = ['duplicate', 'reorder', 'drop', 'delay', 'crash'] as const satisfies Fault[];
/** What may happen to a write. */
export const STORE_FAULTS = ['unavailable', 'answerLost'] as const satisfies Fault[];
const FAULTS: readonly Fault[] = [...DELIVERY_FAULTS, ...STORE_FAULTS];
const RATE_WHEN_NONE_IS_NAMED = 0.05;

/**
 * Makes a plan for {@link faultyTransport} and {@link faultyStore}. Without any rate each fault has 5 %; as soon as one is
 * named, only the named happen. The same seed and rates decide the same for the same messages in the same order at each
 * queue. Throws `TypeError` for rates that cannot be.
 */
export function createFaultPlan(options: FaultPlanOptions = {}): FaultPlan {
  refuseUnknownOptions(options, ['seed', 'maxDelayMs', 'clock', ...FAULTS]);
  const chance = Math.floor(Math.random() * 2 ** 31);
  const seed = integerOption(options.seed, 'seed', { fallback: chance, min: 0, max: 2 ** 32 - 1 });
  const rates = resolveRates(options);
  const places = new Map<string, { next: () => number; count: number }>();
  const trace: DoneFault[] = [];

  return {
    seed,
    maxDelayMs: integerOption(options.maxDelayMs, 'maxDelayMs', { fallback: 20, min: 1, max: LONGEST_TIMER_MS }),
    clock: methodsOption(options.clock ?? systemClock, 'clock', ['now', 'setTimeout', 'clearTimeout']),
    trace,
    decide(name, subject, faults, may = () => true) {
      // One source for each place: what is decided here does not depend on who is faster elsewhere.
      const place = places.get(name) ?? { next: seededNumbers(seedFor(seed, name)), count: 0 };
      places.set(name, place);
      place.count++;
      const [drawn, share] = [place.next(), place.next()];
      const fault = pick(rates, faults, drawn);
      if (fault === undefined || !may(fault)) return { fault: undefined, share };
      trace.push({ place: name, number: place.count, fault, subject });
      return { fault, share };
    },
    toString() {
      const done = trace.map(({ place, number, fault, subject }) => `\n  ${place} #${number} ${fault}: ${subject}`);
      return `fault plan with seed ${seed}, ${trace.length} faults${done.join('')}`;
    },
  };
}

function resolveRates(options: Partial<FaultRates>): FaultRates {
  const fallback = FAULTS.some((fault) => options[fault] !== undefined) ? 0 : RATE_WHEN_NONE_IS_NAMED;
  const rate = (fault: Fault): [Fault, number] => [fault, fractionOption(options[fault], fault, fallback)];
  const rates = Object.fromEntries(FAULTS.map(rate)) as unknown as FaultRates; // one for each name of FAULTS
  for (const kinds of [DELIVERY_FAULTS, STORE_FAULTS]) {
    const sum = kinds.reduce((total, fault) => total + rates[fault], 0);
    if (sum > 1) throw new TypeError(`${kinds.join(', ')} must be 1 together at most, but are ${sum}`);
  }
  return rates;
}

function pick(rates: FaultRates, faults: readonly Fault[], drawn: number): Fault | undefined {
  let below = 0;
  return faults.find((fault) => {
    below += rates[fault];
    return drawn < below;
  });
}
