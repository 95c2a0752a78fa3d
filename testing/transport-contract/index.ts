import type { ContractCase } from '../contract.ts';
import { brokerFaults } from './broker-faults.ts';
import { closing } from './closing.ts';
import { consuming } from './consuming.ts';
import { content } from './content.ts';
import { deadLettering } from './dead-lettering.ts';
import { declaring } from './declaring.ts';
import type { TransportHarness } from './harness.ts';
import { limits } from './limits.ts';
import { lostLinks } from './lost-links.ts';
import { partitioning } from './partitioning.ts';
import { publishing } from './publishing.ts';
import { retiring } from './retiring.ts';
import { routing } from './routing.ts';
import { settling } from './settling.ts';
import { sharing } from './sharing.ts';
import { type Scenario, Stage } from './stage.ts';

export type { Heal, TransportFaults, TransportHarness } from './harness.ts';

const SCENARIOS: readonly Scenario[] = [
  ...routing,
  ...content,
  ...publishing,
  ...consuming,
  ...settling,
  ...deadLettering,
  ...sharing,
  ...partitioning,
  ...retiring,
  ...declaring,
  ...limits,
  ...closing,
  ...lostLinks,
  ...brokerFaults,
];

/**
 * What every transport promises. The cases use random ids, so they may share one broker, but run them one after
 * another: some break every link to it.
 */
export function transportContract(harness: TransportHarness): readonly ContractCase[] {
  return SCENARIOS.map(({ name, verifies = [], timeLimitMs = 60_000, play }) => ({
    name,
    verifies,
    timeLimitMs,
    async run() {
      await using stage = new Stage(harness, timeLimitMs);
      await play(stage);
    },
  }));
}
