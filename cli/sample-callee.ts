import { setTimeout as work } from 'node:timers/promises';
import type { Executor, Policy } from '../callee/index.ts';
import type { Capability } from '../schemas/types.ts';
import type { Transport } from '../shared/transport/transport.ts';
import { conformanceCapability } from '../testing/conformance-capability.ts';
import type { CalleeModule } from './callee-module.ts';

const COUNT: Capability = {
  name: 'demo.count',
  version: '1.0.0',
  description: 'Counts, says how far it is, and continues after a crash',
  input_schema: {
    type: 'object',
    required: ['to'],
    additionalProperties: false,
    properties: {
      to: { type: 'integer', minimum: 1, maximum: 100_000 },
      delay_ms: { type: 'integer', minimum: 0, maximum: 60_000 },
    },
  },
  output_schema: { type: 'object', required: ['counted'] },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
  extensions: ['pause/1'],
};

const DELAY_MS = 200;

const count: Executor = async ({ inputs }, run) => {
  const { to, delay_ms: delayMs = DELAY_MS } = inputs as { to: number; delay_ms?: number }; // by the schema
  for (let i = Number(run.resumedFrom?.data ?? 0) + 1; i <= to; i++) {
    await run.safePoint();
    await work(delayMs, undefined, { signal: run.signal });
    await run.progress({ stage: 'counting', percent: (100 * i) / to, message: String(i) });
    await run.checkpoint(i, { description: `counted to ${i}` });
  }
  return { outputs: { counted: to } };
};

/** A callee to try things with. */
export function sampleCallee(link: Transport['link'], allowed: readonly string[]): CalleeModule {
  return {
    capabilities: [{ declaration: COUNT, executor: count }, conformanceCapability()],
    policy: policy(link, allowed),
  };
}

/** Who is named; else everybody where nothing leaves this machine, and over a network only the `hcp` command itself. */
function policy(link: Transport['link'], allowed: readonly string[]): Policy {
  const names = allowed.length > 0 ? allowed : ['cli'];
  const isOpen = allowed.length === 0 && link === 'local';
  return { callers: ({ callerId }) => (isOpen || names.includes(callerId) ? {} : undefined) };
}
