import type { Check } from '../check.ts';
import { CalleeBench, type CalleeBenchOptions } from './bench.ts';
import { abortChecks } from './checks/abort.ts';
import { acceptanceChecks } from './checks/acceptance.ts';
import { coreChecks } from './checks/core.ts';
import { duplicatesChecks } from './checks/duplicates.ts';
import { envelopeChecks } from './checks/envelope.ts';
import { eventsChecks } from './checks/events.ts';
import { extensionsChecks } from './checks/extensions.ts';
import { gateChecks } from './checks/gate.ts';
import { inputChecks } from './checks/input.ts';
import { isolationChecks } from './checks/isolation.ts';
import { lifecycleChecks } from './checks/lifecycle.ts';
import { restartChecks } from './checks/restart.ts';
import { resultChecks } from './checks/result.ts';
import { sequenceChecks } from './checks/sequence.ts';
import { timeChecks } from './checks/time.ts';
import { topologyChecks } from './checks/topology.ts';

export { CalleeBench, type CalleeBenchOptions } from './bench.ts';

/** Everything a callee can be asked to prove over the wire, in the order in which it is worth knowing. */
export const calleeChecks: readonly Check<CalleeBench>[] = [
  ...topologyChecks,
  ...envelopeChecks,
  ...acceptanceChecks,
  ...lifecycleChecks,
  ...sequenceChecks,
  ...eventsChecks,
  ...resultChecks,
  ...gateChecks,
  ...inputChecks,
  ...abortChecks,
  ...duplicatesChecks,
  ...timeChecks,
  ...isolationChecks,
  ...coreChecks,
  ...extensionsChecks,
  ...restartChecks,
];

/** A bench for one check. */
export function openCalleeBench(options: CalleeBenchOptions): Promise<CalleeBench> {
  return CalleeBench.open(options);
}
