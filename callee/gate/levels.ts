import type { DataClassification, RiskLevel } from '../../schemas/types.ts';

/** From read-only (R1) to life safety (R5). */
export const RISK_LEVELS: readonly RiskLevel[] = ['R1', 'R2', 'R3', 'R4', 'R5'];
/** From no limits (T1) to access by approval (T4). */
export const DATA_CLASSES: readonly DataClassification[] = ['T1', 'T2', 'T3', 'T4'];

/** What another program said, as a level. Compared with anything else every risk would look small: throws `TypeError`. */
export function riskLevel(value: unknown, name: string): RiskLevel {
  return oneOf(RISK_LEVELS, value, name);
}

export function dataClass(value: unknown, name: string): DataClassification {
  return oneOf(DATA_CLASSES, value, name);
}

function oneOf<T extends string>(levels: readonly T[], value: unknown, name: string): T {
  const level = levels.find((known) => known === value);
  if (level === undefined) throw new TypeError(`${name} must be one of ${levels.join(', ')}`);
  return level;
}

/** The highest of them. */
export function highest(levels: readonly [RiskLevel, ...RiskLevel[]]): RiskLevel {
  return levels.reduce((most, level) => (level > most ? level : most));
}
