/** The first callee: scans a sample, frame by frame, into a file that it serves over HTTP: `scanner.ts <url> <folder>`. */
import { appendFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as expose } from 'node:timers/promises';
import { openStore, openTransport, type wire } from 'hcp-sdk';
import {
  acceptKnownCallers,
  createArtifactHandler,
  createCallee,
  createKeyRing,
  describeFile,
  type Executor,
  generateKey,
} from 'hcp-sdk/callee';

const [url = '', folder = ''] = process.argv.slice(2);
const calleeId = 'scanner';
const fileOf = (sessionId: string) => join(folder, `${sessionId}.csv`);

const declaration: wire.Capability = {
  name: 'lab.scan',
  version: '1.0.0',
  description: 'Scans a sample',
  input_schema: {
    type: 'object',
    required: ['sample', 'frames'],
    properties: { sample: { type: 'integer' }, frames: { type: 'integer', minimum: 1 } },
  },
  output_schema: { type: 'object', required: ['frames'] },
  safety: { risk_ceiling: 'R2', requires_human_approval: false, involves_physical_resources: false },
  extensions: ['pause/1'],
};

const scan: Executor = async ({ inputs }, run) => {
  const { sample, frames } = inputs as { sample: number; frames: number }; // the input schema says so
  const path = fileOf(run.sessionId);
  for (let frame = 1; frame <= frames; frame++) {
    await run.safePoint(); // between two frames it can rest
    await expose(30, undefined, { signal: run.signal });
    await appendFile(path, `${frame},${1000 * sample + frame}\n`);
    await run.progress({ stage: 'scanning', percent: (100 * frame) / frames, message: `frame ${frame}` });
  }
  const named = { name: 'scan.csv', type: 'text/csv', calleeId, sessionId: run.sessionId };
  return { outputs: { frames }, artifacts: [await describeFile({ path, ...named })] };
};

const [transport, store] = await Promise.all([openTransport(url), openStore(url)]);
const keys = await createKeyRing([await generateKey()]);
const handler = createArtifactHandler({ calleeId, keys, locate: async ({ sessionId }) => fileOf(sessionId) });
const server = createServer(handler);
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo; // it listens on a port
const callee = createCallee({
  ...{ calleeId, transport, store, keys },
  policy: acceptKnownCallers(['conductor']),
  artifacts: { baseUrl: `http://127.0.0.1:${port}/artifacts` },
});
callee.capability(declaration, scan, { cleanup: (_, { sessionId }) => rm(fileOf(sessionId), { force: true }) });
await callee.start();
process.send?.('ready');
process.once('disconnect', () => process.exit()); // whoever started us is gone
