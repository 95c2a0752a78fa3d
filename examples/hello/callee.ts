/** The shortest harness: it greets whom it is told to greet. */
import { openStore, openTransport } from 'hcp-sdk';
import { acceptKnownCallers, createCallee } from 'hcp-sdk/callee';

const [url = 'sqlite:./hcp.db'] = process.argv.slice(2);
const [transport, store] = await Promise.all([openTransport(url), openStore(url)]);
const callee = createCallee({ calleeId: 'greeter', transport, store, policy: acceptKnownCallers(['visitor']) });
const declaration = {
  ...{ name: 'demo.hello', version: '1.0.0', description: 'Greets somebody' },
  input_schema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
  output_schema: { type: 'object', required: ['greeting'] },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
} as const;
callee.capability(declaration, async ({ inputs }, run) => {
  await run.progress({ stage: 'greeting', percent: 50, message: `Looking for ${inputs.name}` });
  return { outputs: { greeting: `Hello, ${inputs.name}!` } };
});
await callee.start();
process.send?.('ready');
process.once('disconnect', () => process.exit()); // whoever started us is gone
