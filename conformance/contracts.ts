import type { ContractCase } from '../testing/contract.ts';
import type { Check } from './check.ts';

/** The proofs of a contract of an adapter, as checks that need no bench. */
export function contractChecks(contract: string, cases: readonly ContractCase[]): readonly Check<unknown>[] {
  return cases.map(({ name, verifies, run }) => ({
    id: `${contract}/${slug(name)}`,
    requirements: verifies,
    family: contract,
    title: name,
    run: () => run(),
  }));
}

/** How long the slowest of them may take. */
export function longestCaseMs(cases: readonly ContractCase[]): number {
  return Math.max(...cases.map(({ timeLimitMs }) => timeLimitMs));
}

function slug(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}
