/** The second callee: fetches a scan, checks that it is the one that was promised, and works out its mean. */
import { createHash } from 'node:crypto';
import { openStore, openTransport, type wire } from 'hcp-sdk';
import { acceptKnownCallers, createCallee, type Executor, TaskFailure } from 'hcp-sdk/callee';

const declaration: wire.Capability = {
  name: 'lab.analyse',
  version: '1.0.0',
  description: 'Works out the mean of a scan',
  input_schema: {
    type: 'object',
    required: ['url', 'checksum'],
    properties: { url: { type: 'string' }, checksum: { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' } },
  },
  output_schema: { type: 'object', required: ['mean'] },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
};

const analyse: Executor = async ({ inputs }, { signal }) => {
  const response = await fetch(String(inputs.url), { signal });
  if (!response.ok) throw new TaskFailure('resource_unavailable', `The scan is not there: ${response.status}`);
  const content = Buffer.from(await response.arrayBuffer());
  const checksum = `sha256:${createHash('sha256').update(content).digest('hex')}`;
  if (checksum !== inputs.checksum) throw new TaskFailure('input_error', 'This is not the scan that was promised');
  const values = content
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => Number(line.split(',')[1]));
  return { outputs: { mean: values.reduce((sum, value) => sum + value, 0) / values.length } };
};

const [url = ''] = process.argv.slice(2);
const [transport, store] = await Promise.all([openTransport(url), openStore(url)]);
const policy = acceptKnownCallers(['conductor']);
const callee = createCallee({ calleeId: 'analyst', transport, store, policy });
callee.capability(declaration, analyse);
await callee.start();
process.send?.('ready');
process.once('disconnect', () => process.exit()); // whoever started us is gone
