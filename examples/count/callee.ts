/** A harness that counts, says how far it is, and continues from its last checkpoint after a crash. */
import { setTimeout as work } from 'node:timers/promises';
import { openStore, openTransport } from 'hcp-sdk';
import { acceptKnownCallers, createCallee } from 'hcp-sdk/callee';

const [url = ''] = process.argv.slice(2); // sqlite:./hcp.db, or amqp://… here and mongodb://… below
const [transport, store] = await Promise.all([openTransport(url), openStore(url)]);
const policy = acceptKnownCallers(['alpha']);
const callee = createCallee({ calleeId: 'lab', instanceId: 'lab-1', transport, store, policy });
callee.capability(
  {
    name: 'demo.count',
    version: '1.0.0',
    description: 'Counts',
    input_schema: { type: 'object', required: ['to'], properties: { to: { type: 'integer', minimum: 1 } } },
    output_schema: { type: 'object', required: ['counted'] },
    safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
  },
  async ({ inputs }, run) => {
    const to = Number(inputs.to);
    for (let i = Number(run.resumedFrom?.data ?? 0) + 1; i <= to; i++) {
      await work(20, undefined, { signal: run.signal });
      await run.progress({ stage: 'counting', percent: (100 * i) / to, message: String(i) });
      if (i % 10 === 0) await run.checkpoint(i, { description: `counted to ${i}` });
    }
    return { outputs: { counted: to } };
  },
);
await callee.start();
process.once('disconnect', () => process.exit(1)); // whoever started it is gone
process.send?.('ready');
