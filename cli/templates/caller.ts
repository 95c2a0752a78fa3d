import type { Template } from './project.ts';

const LEDGER = `
import { hcpTables } from 'hcp-sdk';

/** A table of our own beside those of the SDK, in whatever store it is. */
export const tables = {
  ...hcpTables,
  ledger: {
    columns: { session_id: 'text', sequence: 'integer', event_type: 'text', message: 'text' },
    key: ['session_id', 'sequence'],
    indexes: {},
  },
};

/**
 * Takes effect exactly once per event: what is written through tx commits together with the caller's place in the
 * session, or not at all. It may be called again after a crash, so it does nothing else.
 */
export async function record({ session_id, payload: { sequence, event_type, data } }, tx) {
  const message = typeof data.message === 'string' ? data.message : '';
  await tx.write([{ insert: 'ledger', row: { session_id, sequence, event_type, message } }]);
}

/** All lines of one session, in order. */
export async function linesOf(store, sessionId) {
  const lines = [];
  for (;;) {
    const after = lines.at(-1);
    const page = await store.scan('ledger', 'key', { where: [sessionId], ...(after && { after }) });
    if (page.length === 0) return lines;
    lines.push(...page);
  }
}
`;

const MAIN = `
import { openStore, openTransport } from 'hcp-sdk';
import { createCaller } from 'hcp-sdk/caller';
import { linesOf, record, tables } from './ledger.mjs';

const { HCP_DB = './hcp.db', HCP_AMQP_URL, HCP_STORE_URL, HCP_CALLER_ID: callerId = '{{id}}' } = process.env;
const calleeId = process.env.HCP_CALLEE_ID ?? 'dev';
const [capability = 'demo.count', inputs = '{"to":5}'] = process.argv.slice(2);

const transport = await openTransport(HCP_AMQP_URL || 'sqlite:' + HCP_DB);
const store = await openStore(HCP_STORE_URL || 'sqlite:' + HCP_DB, { tables });
const caller = createCaller({ callerId, transport, store, onEvent: record });

try {
  const task = { capability, intent: 'Try ' + capability, inputs: JSON.parse(inputs) };
  const session = await caller.submit(task, { calleeId });
  const outcome = await session.result();
  for (const line of session.sessionId ? await linesOf(store, session.sessionId) : []) {
    console.log(String(line.sequence).padStart(4), line.event_type, line.message);
  }
  console.log(outcome.status, outcome.status === 'completed' ? outcome.outputs : outcome);
  process.exitCode = outcome.status === 'completed' ? 0 : 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await caller.close();
  await transport.close();
  await store.close();
}
`;

const TEST = `
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore, openTransport } from 'hcp-sdk';
import { acceptKnownCallers, createCallee } from 'hcp-sdk/callee';
import { createCaller } from 'hcp-sdk/caller';
import { ManualClock } from 'hcp-sdk/testing';
import { linesOf, record, tables } from './ledger.mjs';

const greeting = {
  name: 'test.greet',
  version: '1.0.0',
  description: 'Says hello three times',
  input_schema: { type: 'object' },
  output_schema: { type: 'object' },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
};

test('has every event once, also when the ledger fails in the middle of one', async (t) => {
  const [transport, store] = [await openTransport('memory:'), await openStore('memory:', { tables })];
  const callee = createCallee({ calleeId: 'other', transport, store, policy: acceptKnownCallers(['us']) });
  callee.capability(greeting, async (task, run) => {
    for (const message of ['one', 'two', 'three']) await run.log({ level: 'info', message });
    return { outputs: {} };
  });
  await callee.start();

  // The caller waits before it tries again: on this clock that takes no time.
  const clock = new ManualClock();
  const passing = setInterval(() => clock.advance(100), 1);
  let failures = 0;
  const failing = async (event, tx) => {
    await record(event, tx);
    if (event.payload.data.message === 'two' && failures++ < 2) throw new Error('The power is gone');
  };
  const caller = createCaller({ callerId: 'us', transport, store, clock, onEvent: failing });
  t.after(async () => {
    clearInterval(passing);
    await caller.close();
    await callee.close();
    await transport.close();
  });

  const session = await caller.submit({ capability: 'test.greet', intent: 'Greet us', inputs: {} }, { calleeId: 'other' });
  assert.equal((await session.result()).status, 'completed');
  const lines = await linesOf(store, session.sessionId);
  assert.ok(failures >= 2);
  assert.deepEqual(
    lines.map(({ sequence }) => sequence),
    lines.map((_, index) => index + 1),
  );
  assert.deepEqual(
    lines.filter(({ event_type }) => event_type === 'log').map(({ message }) => message),
    ['one', 'two', 'three'],
  );
});
`;

const README = `
# {{id}}

A caller: it delegates a task to another harness, over HCP, and keeps a ledger of what that one says, every event exactly
once (ledger.mjs).

    npm install
    npm test
    npm start

The last one needs a callee, in another terminal in this folder: npx hcp dev. For another callee or task:

    HCP_CALLEE_ID=my-callee npm start -- tea.brew '{"seconds":3}'

Nothing has to run beside them: queues and records are in ./hcp.db, or in the file that HCP_DB names. With HCP_AMQP_URL
(amqps://…) and HCP_STORE_URL (mongodb://…) the same program works on real servers; npx hcp doctor tells whether they are fit.
`;

/** A caller that submits a task and keeps a ledger, with a test of it. */
export const callerTemplate: Template = {
  description: 'An HCP caller',
  main: 'caller.mjs',
  files: { 'README.md': README, 'ledger.mjs': LEDGER, 'ledger.test.mjs': TEST, 'caller.mjs': MAIN },
};
