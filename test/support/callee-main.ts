// A callee in a process of its own: `callee-main.ts <options as JSON>`. Says "ready" when it takes commands.
import { acceptKnownCallers, createCallee } from '../../callee/index.ts';
import { openStore } from '../../shared/store/open-store.ts';
import { openTransport } from '../../shared/transport/open-transport.ts';
import type { CalleeProcessOptions } from './callee-process.ts';
import { scripted, scriptedCleanup } from './scripted.ts';
import { TASK } from './world.ts';

const given: CalleeProcessOptions = JSON.parse(process.argv[2] ?? '');
const { transportUrl, storeUrl, callerId, declaration, ...options } = given;
const [transport, store] = await Promise.all([openTransport(transportUrl), openStore(storeUrl)]);
const policy = acceptKnownCallers({ [callerId]: { riskLimit: 'R5' } });
const callee = createCallee({ ...options, transport, store, policy });
const offered = { ...TASK, extensions: ['pause/1', 'resume/1'], ...declaration };
callee.capability(offered, scripted, { cleanup: scriptedCleanup });
process.on('SIGTERM', async () => {
  await callee.close();
  await transport.close();
  await store.close();
  console.log('closed');
});
const startedAt = performance.now();
await callee.start();
console.log('ready', Math.round(performance.now() - startedAt));
