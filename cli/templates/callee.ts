import type { Template } from './project.ts';

const CAPABILITY = `
import { systemClock } from 'hcp-sdk';

/** What callers may ask for, and within which limits. Inputs that break the schema never reach the executor. */
export const declaration = {
  name: 'tea.brew',
  version: '1.0.0',
  description: 'Brews tea, and tells each second',
  input_schema: {
    type: 'object',
    required: ['seconds'],
    additionalProperties: false,
    properties: { seconds: { type: 'integer', minimum: 1, maximum: 600 } },
  },
  output_schema: { type: 'object', required: ['brewed_seconds'] },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
};

/** Does the work. Time is an argument, so that a test need not wait for it. */
export function brewing(clock = systemClock) {
  return async ({ inputs: { seconds } }, run) => {
    // After a crash it continues behind its last checkpoint.
    for (let second = (run.resumedFrom?.data ?? 0) + 1; second <= seconds; second++) {
      await wait(clock, 1000, run.signal);
      await run.progress({ stage: 'brewing', percent: (100 * second) / seconds, message: second + ' s' });
      await run.checkpoint(second, { description: 'after ' + second + ' s' });
    }
    return { outputs: { brewed_seconds: seconds } };
  };
}

/** An abort ends the wait, and with it the task. */
function wait(clock, delayMs, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = clock.setTimeout(resolve, delayMs);
    const stop = () => {
      clock.clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}
`;

const MAIN = `
import { openStore, openTransport } from 'hcp-sdk';
import { acceptKnownCallers, createCallee } from 'hcp-sdk/callee';
import { brewing, declaration } from './capability.mjs';

const { HCP_DB = './hcp.db', HCP_AMQP_URL, HCP_STORE_URL, HCP_CALLEE_ID: calleeId = '{{id}}' } = process.env;
const transport = await openTransport(HCP_AMQP_URL || 'sqlite:' + HCP_DB);
const store = await openStore(HCP_STORE_URL || 'sqlite:' + HCP_DB);

const callee = createCallee({
  calleeId,
  // One name per process: when it comes back under it, it continues its sessions at once.
  instanceId: calleeId + '-1',
  transport,
  store,
  // Who may have something done here.
  policy: acceptKnownCallers(['cli', 'my-caller']),
});
callee.capability(declaration, brewing());
await callee.start();
console.log('Callee ' + calleeId + ' offers ' + declaration.name + '. Ctrl-C ends it.');

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await callee.close();
    await transport.close();
    await store.close();
  });
}
`;

const TEST = `
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore, openTransport } from 'hcp-sdk';
import { acceptKnownCallers, createCallee } from 'hcp-sdk/callee';
import { createCaller } from 'hcp-sdk/caller';
import { ManualClock } from 'hcp-sdk/testing';
import { brewing, declaration } from './capability.mjs';

/** A callee and a caller in this process, and a clock on which the tea takes no time. */
async function kitchen(t) {
  const [transport, store] = [await openTransport('memory:'), await openStore('memory:')];
  const clock = new ManualClock();
  const callee = createCallee({ calleeId: 'kitchen', transport, store, policy: acceptKnownCallers(['guest']) });
  callee.capability(declaration, brewing(clock));
  await callee.start();
  const caller = createCaller({ callerId: 'guest', transport, store });
  const passing = setInterval(() => clock.advance(1000), 1);
  t.after(async () => {
    clearInterval(passing);
    await caller.close();
    await callee.close();
    await transport.close();
  });
  return (inputs) =>
    caller.submit({ capability: 'tea.brew', intent: 'Tea, please', inputs }, { calleeId: 'kitchen' });
}

test('brews for as long as it was asked to, and tells each second', async (t) => {
  const order = await kitchen(t);
  const session = await order({ seconds: 60 });
  const told = [];
  for await (const { payload } of session.events()) {
    if (payload.event_type === 'progress') told.push(payload.data.message);
  }
  assert.equal(told.length, 60);
  assert.equal(told.at(-1), '60 s');
  const outcome = await session.result();
  assert.equal(outcome.status, 'completed');
  assert.deepEqual(outcome.outputs, { brewed_seconds: 60 });
});

test('takes no order for no time at all', async (t) => {
  const order = await kitchen(t);
  const session = await order({ seconds: 0 });
  assert.equal((await session.result()).status, 'rejected');
});
`;

const README = `
# {{id}}

A callee: other harnesses delegate tasks to it, over HCP. It offers one capability, tea.brew (capability.mjs).

    npm install
    npm test
    npm start

Then, in another terminal in this folder:

    npx hcp submit tea.brew --callee-id {{id}} --input '{"seconds":3}'

Nothing has to run beside it: queues and records are in ./hcp.db, or in the file that HCP_DB names. With HCP_AMQP_URL
(amqps://…) and HCP_STORE_URL (mongodb://…) the same program works on real servers; npx hcp doctor tells whether they are fit.

Kill it while it works and start it again: it continues the same session behind its last checkpoint. Who may have something
done is said in callee.mjs.
`;

/** A callee with a capability of its own and a test of it. */
export const calleeTemplate: Template = {
  description: 'An HCP callee',
  main: 'callee.mjs',
  files: { 'README.md': README, 'capability.mjs': CAPABILITY, 'capability.test.mjs': TEST, 'callee.mjs': MAIN },
};
