/** A bank: it settles a batch and tells each movement as it is made. */
import { setTimeout as settle } from 'node:timers/promises';
import { openStore, openTransport } from 'hcp-sdk';
import { acceptKnownCallers, createCallee } from 'hcp-sdk/callee';
import { movementsOf } from './movements.ts';

const [transportUrl = '', storeUrl = ''] = process.argv.slice(2);
const [transport, store] = await Promise.all([openTransport(transportUrl), openStore(storeUrl)]);
const policy = acceptKnownCallers(['treasurer']);
const callee = createCallee({ calleeId: 'bank', transport, store, policy });
callee.capability(
  {
    name: 'bank.settle',
    version: '1.0.0',
    description: 'Settles the movements of a batch',
    input_schema: {
      type: 'object',
      required: ['batch', 'movements'],
      properties: { batch: { type: 'integer', minimum: 1 }, movements: { type: 'integer', minimum: 1 } },
    },
    output_schema: { type: 'object', required: ['cents'] },
    safety: { risk_ceiling: 'R2', requires_human_approval: false, involves_physical_resources: false },
  },
  async ({ inputs }, run) => {
    const movements = movementsOf(Number(inputs.batch), Number(inputs.movements));
    for (const [index, data] of movements.entries()) {
      await settle(20, undefined, { signal: run.signal });
      await run.intermediateResult({ result_type: 'movement', data, is_partial: index < movements.length - 1 });
    }
    return { outputs: { cents: movements.reduce((sum, { cents }) => sum + cents, 0) } };
  },
);
await callee.start();
process.send?.('ready');
process.once('disconnect', () => process.exit()); // whoever started us is gone
