/**
 * Two processes and one file: a caller has a callee count over a link that repeats and reorders, and kills it on the way.
 * No broker, no database, no container. Ends with code 0 only if what it tells is true.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hcpTables, openStore, openTransport, type Row, type Store, type StoreTransaction, type wire } from 'hcp-sdk';
import { createCaller } from 'hcp-sdk/caller';
import { createFaultPlan, faultyTransport } from 'hcp-sdk/testing';
import { say, showProgress } from './terminal.ts';

const TO = 60;
const KILL_AT = 34;
const folder = mkdtempSync(join(tmpdir(), 'hcp-demo-'));
const url = `sqlite:${join(folder, 'hcp.db')}`;
/** One row for each effect, in the order they happened. Nothing but the transaction keeps an event from having two. */
const tables = {
  ...hcpTables,
  ledger: {
    columns: { entry: 'integer', session_id: 'text', sequence: 'integer', message_id: 'text' },
    key: ['entry'],
    indexes: {},
  },
} as const;
const plan = createFaultPlan({ seed: 7, duplicate: 0.15, reorder: 0.1, maxDelayMs: 500 });
const killTime = Promise.withResolvers<void>();
const closed = Promise.withResolvers<void>();
let callee: ChildProcess | undefined;
const alarm = setTimeout(() => {
  throw new Error('The demo should have ended by now');
}, 30_000);

console.log(`Two processes, one file (${url}), no server\n`);
try {
  await using store = await openStore(url, { tables });
  await using link = faultyTransport(await openTransport(url), plan);
  const caller = createCaller({ callerId: 'alpha', transport: link, store, onEvent });
  callee = await startCallee();

  const task = { capability: 'demo.count', intent: `Count to ${TO}`, inputs: { to: TO } };
  const session = await caller.submit(task, { calleeId: 'lab' });
  say('caller', `submitted "${task.intent}"; it is session ${session.sessionId}`);
  await killTime.promise;
  await killCallee(callee);
  say('caller', 'kills the callee with SIGKILL, and starts it again');
  callee = await startCallee();
  const outcome = await session.result();
  assert(outcome.status === 'completed');
  await closed.promise;
  await caller.close(); // the last event is committed then
  say('callee', `is done: ${JSON.stringify(outcome.outputs)}`);
  await settleAccounts(store, String(session.sessionId));
  console.log('\nNothing lost, nothing twice, nothing out of order.');
} finally {
  clearTimeout(alarm);
  if (callee) await killCallee(callee);
  rmSync(folder, { recursive: true });
}

/** Exactly once: the entry commits together with the caller's place in the session, or not at all. */
async function onEvent({ session_id, message_id, payload }: wire.EventMessage, tx: StoreTransaction): Promise<void> {
  const { sequence, event_type: type, data } = payload;
  const [last] = await tx.scan('ledger', 'key', { order: 'descending', limit: 1 });
  const row = { entry: Number(last?.entry ?? 0) + 1, session_id, sequence, message_id };
  await tx.write([{ insert: 'ledger', row }]);

  if (type === 'progress') showProgress(Number(data.percent), String(data.message));
  if (type === 'checkpoint_created') say('callee', `keeps a checkpoint: ${data.description}`);
  if (type === 'state_changed') say('callee', `goes from ${data.from_state} to ${data.to_state}: ${data.reason}`);
  if (type === 'progress' && data.message === String(KILL_AT)) killTime.resolve();
  if (type === 'session_closed') closed.resolve();
}

/** Compares what the callee has logged with what the handler has done. */
async function settleAccounts(store: Store, sessionId: string): Promise<void> {
  const count = (fault: string) => plan.trace.filter((done) => done.fault === fault).length;
  const [repeated, reordered] = [count('duplicate'), count('reorder')];
  say('link', `has repeated ${repeated} deliveries and held back ${reordered}`);
  assert(repeated > 0 && reordered > 0);

  const log = await store.scan('log', 'key', { where: [sessionId], limit: 1000 });
  const events = log.filter(({ sequence }) => sequence !== null).map(name);
  const effects = (await store.scan('ledger', 'key', { limit: 1000 })).map(name);
  const lost = events.filter((event) => !effects.includes(event)).length;
  const twice = effects.length - new Set(effects).size;
  say('ledger', `${events.length} events, ${effects.length} effects, ${lost} lost, ${twice} twice`);
  assert(events.length > TO);
  assert.deepEqual(effects, events, 'each event had its effect, once and in its turn');
}

function name({ sequence, message_id }: Row): string {
  return `${sequence} ${message_id}`;
}

async function startCallee(): Promise<ChildProcess> {
  const child = fork(new URL('./callee.ts', import.meta.url), [url]);
  await once(child, 'message');
  return child;
}

async function killCallee(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
