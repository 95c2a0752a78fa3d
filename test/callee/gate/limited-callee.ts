// A callee with one place, in a process of its own: `limited-callee.ts <options as JSON>`. Says "ready", then "working".
import { acceptKnownCallers, createCallee } from '../../../callee/index.ts';
import { openStore } from '../../../shared/store/open-store.ts';
import { openTransport } from '../../../shared/transport/open-transport.ts';
import { untilStopped } from '../../support/executors.ts';
import { TASK } from '../../support/world.ts';

const { transportUrl, storeUrl, callerId, ...options } = JSON.parse(process.argv[2] ?? '');
const [transport, store] = await Promise.all([openTransport(transportUrl), openStore(storeUrl)]);
const callee = createCallee({ ...options, transport, store, policy: acceptKnownCallers([callerId]) });
callee.capability({ ...TASK, constraints: { concurrent_limit: 1 } }, (task, run) => {
  console.log('working');
  return untilStopped(task, run);
});
await callee.start();
console.log('ready');
