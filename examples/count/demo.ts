/**
 * Two processes and one file: a caller has a callee count, and kills it on the way. No broker, no database, no container.
 * Ends with code 0 only if what it tells is true.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  buildMessage,
  commandQueue,
  commandRoute,
  deadLetterQueue,
  newMessageId,
  openTransport,
  type Transport,
} from 'hcp-sdk';
import { type CalleeMessage, type EventChannel, openEventChannel } from 'hcp-sdk/caller';

const TO = 100;
const folder = mkdtempSync(join(tmpdir(), 'hcp-demo-'));
const url = `sqlite:${join(folder, 'hcp.db')}`;
const say = (who: string, what: string) => console.log(`  ${who.padEnd(13)} ${what}`);
let callee: ChildProcess;

console.log(`Two processes, one file (${url}), no server\n`);
try {
  await using transport = await openTransport(url);
  const channel = openEventChannel({ callerId: 'alpha', transport });
  const next = await listen(channel);
  callee = await startCallee();
  const { submit, accepted } = await submitTask(channel, next);
  await followThroughKill(next);
  await repeatSubmit(channel, next, submit, accepted);
  await sendNonsense(transport, next);
  console.log('\nNothing lost, nothing twice, nothing out of order.');
} finally {
  await killCallee();
  rmSync(folder, { recursive: true });
}

async function startCallee(): Promise<ChildProcess> {
  const child = fork(new URL('./callee.ts', import.meta.url), [url]);
  await once(child, 'message');
  return child;
}

async function killCallee(): Promise<void> {
  const exited = once(callee, 'exit');
  callee.kill('SIGKILL');
  await exited;
}

/** A caller by hand: messages as they come, repetitions included, one by one. */
async function listen(channel: EventChannel): Promise<() => Promise<CalleeMessage>> {
  const inbox: CalleeMessage[] = [];
  let wake = () => {};
  await channel.consume(async ({ message }) => {
    inbox.push(message);
    wake();
  });
  return async () => {
    while (inbox.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    return inbox.shift() as CalleeMessage; // the loop ends only when there is one
  };
}

async function submitTask(channel: EventChannel, next: () => Promise<CalleeMessage>) {
  const submit = buildMessage({
    type: 'task_submit',
    sessionId: null,
    senderId: 'alpha',
    payload: { capability: 'demo.count', caller_id: 'alpha', intent: `Count to ${TO}`, inputs: { to: TO } },
  });
  say('caller alpha', `submits ${submit.message.message_id}: "Count to ${TO}"`);
  assert.equal(await channel.publish('lab', submit), 'confirmed');
  const accepted = await next();
  assert(accepted.type === 'task_accepted' && accepted.payload.in_reply_to === submit.message.message_id);
  say('callee lab', `accepts it as session ${accepted.session_id}, risk ${accepted.payload.risk_level}`);
  return { submit, accepted };
}

/** Follows the session by its sequence numbers: what comes twice is passed over, a hole would end the demo. */
async function followThroughKill(next: () => Promise<CalleeMessage>): Promise<void> {
  let cursor = 0;
  let repeated = 0;
  let killed = false;
  const counted: number[] = [];
  for (;;) {
    const message = await next();
    if (message.type === 'task_completed') say('callee lab', `is done: ${JSON.stringify(message.payload.outputs)}`);
    if (message.type !== 'event') continue;
    const { sequence, event_type: type, data } = message.payload;
    if (sequence <= cursor) {
      repeated++;
      continue;
    }
    assert.equal(sequence, cursor + 1, 'no event is missing');
    cursor = sequence;
    if (type === 'progress') counted.push(Number(data.message));
    if (type === 'state_changed') say('callee lab', `goes from ${data.from_state} to ${data.to_state}: ${data.reason}`);
    if (counted.at(-1) === 20 && !killed) {
      killed = true;
      await killCallee();
      say('caller alpha', 'kills the callee with SIGKILL after "20", and starts it again');
      callee = await startCallee();
    }
    if (type === 'session_closed') break;
  }
  // A step that was said but not checkpointed is done again; none is left out.
  assert.deepEqual(
    [...new Set(counted)],
    Array.from({ length: TO }, (_, index) => index + 1),
  );
  say('caller alpha', `has seen events 1 to ${cursor}, each once (${repeated} came twice), and every number to ${TO}`);
}

async function repeatSubmit(
  channel: EventChannel,
  next: () => Promise<CalleeMessage>,
  submit: Parameters<EventChannel['publish']>[1],
  accepted: CalleeMessage,
): Promise<void> {
  say('caller alpha', 'submits the same bytes again, as after a time-out');
  await channel.publish('lab', submit);
  assert.deepEqual(await next(), accepted);
  say('callee lab', 'sends the same task_accepted again: one task, one session');
}

async function sendNonsense(transport: Transport, next: () => Promise<CalleeMessage>): Promise<void> {
  say('caller alpha', 'submits a task without an intent, past its own validation');
  const payload = { capability: 'demo.count', caller_id: 'alpha', inputs: { to: 3 } };
  const spoilt = { hcp_version: '1.0', message_id: newMessageId(), timestamp: new Date().toISOString(), payload };
  const body = Buffer.from(JSON.stringify({ ...spoilt, session_id: null, type: 'task_submit' }));
  await transport.publish({ route: commandRoute('lab'), body, properties: { appId: 'alpha', type: 'task_submit' } });
  const rejected = await next();
  assert(rejected.type === 'task_rejected');
  say('callee lab', `rejects it: ${rejected.payload.reason_code}, ${rejected.payload.reason_message}`);

  say('caller alpha', 'sends something that is no message at all');
  await transport.publish({ route: commandRoute('lab'), body: Buffer.from('hello?'), properties: {} });
  await new Promise<void>((resolve, reject) => {
    const dead = deadLetterQueue(commandQueue('lab'));
    transport
      .consume(dead, (letter) => {
        letter.ack();
        resolve();
      })
      .catch(reject);
  });
  say('dead letters', 'hold it; the callee goes on');
}
