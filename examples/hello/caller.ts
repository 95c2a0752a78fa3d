/** Has somebody greeted and prints the session. Ends with code 0 only if what it tells is true. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore, openTransport, redact } from 'hcp-sdk';
import { createCaller } from 'hcp-sdk/caller';

const folder = mkdtempSync(join(tmpdir(), 'hcp-hello-'));
const url = `sqlite:${join(folder, 'hcp.db')}`;
const greeter = fork(new URL('./callee.ts', import.meta.url), [url]);
try {
  await once(greeter, 'message');
  await using transport = await openTransport(url);
  await using store = await openStore(url);
  await using caller = createCaller({ callerId: 'visitor', transport, store });

  const task = { capability: 'demo.hello', intent: 'Greet Ada', inputs: { name: 'Ada' } };
  const session = await caller.submit(task, { calleeId: 'greeter' });
  console.log(`session ${session.sessionId}`);
  const sequences: number[] = [];
  for await (const { payload } of session.events()) {
    sequences.push(payload.sequence);
    console.log(`${payload.sequence}  ${payload.event_type.padEnd(14)} ${JSON.stringify(redact(payload.data))}`);
  }
  const outcome = await session.result();
  assert.equal(outcome.status, 'completed');
  assert.deepEqual(outcome.outputs, { greeting: 'Hello, Ada!' });
  assert.deepEqual(sequences, [1, 2, 3, 4, 5]);
  console.log(`\n${outcome.outputs.greeting}`);
} finally {
  greeter.kill();
  rmSync(folder, { recursive: true });
}
