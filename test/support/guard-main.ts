// A furnace in a process of its own: `guard-main.ts <options as JSON>`. Says what it does, line by line.
import { acceptKnownCallers, createCallee } from '../../callee/index.ts';
import { openStore } from '../../shared/store/open-store.ts';
import { openTransport } from '../../shared/transport/open-transport.ts';
import { untilStopped } from './executors.ts';
import { ENVELOPE } from './furnace.ts';
import type { GuardProcessOptions } from './guard-process.ts';
import { TASK } from './world.ts';

const { transportUrl, storeUrl, callerId, cooling, ...options }: GuardProcessOptions = JSON.parse(
  process.argv[2] ?? '',
);
const [transport, store] = await Promise.all([openTransport(transportUrl), openStore(storeUrl)]);
const callee = createCallee({ ...options, transport, store, policy: acceptKnownCallers([callerId]) });

/** What cools is the whole point: killed in the middle of it, somebody must begin again. */
const cool = async ({ condition }: { condition: string }) => {
  console.log('cooling', condition);
  if (cooling === 'endless') await new Promise(() => {});
};

callee.capability(
  TASK,
  async (task, run) => {
    console.log('working', run.resumedFrom === undefined ? 'anew' : 'again');
    await run.checkpoint({ lit: true }, { description: 'lit' });
    if (task.inputs.heat !== undefined) await run.guard.act('heat', { temperature: task.inputs.heat });
    return untilStopped(task, run);
  },
  cooling === 'unknown' ? {} : { envelope: ENVELOPE, procedures: { cool, shut_down: cool } },
);
await callee.start();
console.log('ready');
