import type { EnvelopeLimit, SafetyEnvelope } from '../schemas/types.ts';
import type { Violation } from './record.ts';

/** What an envelope says of an action before it is done. */
export interface Verdict {
  /** Not to be done. */
  readonly hard: Violation | undefined;
  /** To be told; the action may be done. */
  readonly soft: readonly Violation[];
}

/**
 * Judges one action and its parameters (HCP-310). A value that cannot be compared with its limit is beyond it, and a
 * limit is hard unless it says that it is not.
 */
export function judgeAction(
  { parameters = {}, prohibited_actions: prohibited = [] }: SafetyEnvelope,
  action: string,
  values: Readonly<Record<string, unknown>>,
): Verdict {
  if (prohibited.includes(action)) {
    return { hard: { action, condition: action, message: `${action} is prohibited` }, soft: [] };
  }
  const broken = Object.entries(parameters)
    .filter(([name]) => isGiven(values, name))
    .flatMap(([name, limit]) => {
      const fault = limitFault(name, values[name], limit);
      return fault === undefined
        ? []
        : [{ isHard: limit.hard_limit !== false, violation: { action, condition: name, message: fault } }];
    });
  return {
    hard: broken.find(({ isHard }) => isHard)?.violation,
    soft: broken.filter(({ isHard }) => !isHard).map(({ violation }) => violation),
  };
}

/** Also where a class of the vendor's has it as a getter; but not what every object has, as `toString`. */
function isGiven(values: object, name: string): boolean {
  return Object.hasOwn(values, name) || (name in values && !(name in Object.prototype));
}

function limitFault(name: string, value: unknown, { min, max, unit = '' }: EnvelopeLimit): string | undefined {
  if (typeof value !== 'number' || Number.isNaN(value)) return `${name} is no number and cannot be held to its limit`;
  const told = (bound: number) => `${bound}${unit && ` ${unit}`}`;
  if (max !== undefined && value > max) return `${name} would be ${told(value)}, allowed are ${told(max)} at most`;
  if (min !== undefined && value < min) return `${name} would be ${told(value)}, allowed are ${told(min)} at least`;
  return undefined;
}

/** The procedure to run when this limit was broken: under the name of the parameter or action, or of `default`. */
export function procedureFor(
  { emergency_procedures: procedures = {} }: SafetyEnvelope,
  { condition }: Violation,
): string | undefined {
  return Object.hasOwn(procedures, condition) ? procedures[condition] : procedures.default;
}
