/**
 * A long task that is killed, fails and runs out of time, and never begins again from the beginning.
 * Ends with code 0 only if what it tells is true.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore, openTransport, type wire } from 'hcp-sdk';
import { createCaller, type Outcome, type Session, type Task } from 'hcp-sdk/caller';

const SOURCES = 45;
const MISSING = 20;
const say = (who: string, what: string) => console.log(`  ${who.padEnd(8)} ${what}`);
const folder = mkdtempSync(join(tmpdir(), 'hcp-research-'));
const url = `sqlite:${join(folder, 'hcp.db')}`;
const sources = Array.from({ length: SOURCES }, (_, index) => join(folder, `source-${index + 1}.txt`));
/** Source n mentions it n times: whatever is left out or read twice shows in the sum. */
const write = (n: number) => writeFileSync(sources[n - 1] ?? '', 'We like the protocol. '.repeat(n));
const MENTIONS = (SOURCES * (SOURCES + 1)) / 2;
const task: Task = {
  capability: 'research.mentions',
  intent: 'How often is the protocol mentioned?',
  inputs: { word: 'protocol', sources },
};

for (let n = 1; n <= SOURCES; n++) if (n !== MISSING) write(n);
let library = await startLibrary();
try {
  await using transport = await openTransport(url);
  await using store = await openStore(url);
  await using caller = createCaller({ callerId: 'editor', transport, store });
  const submit = (what: Task) => caller.submit(what, { calleeId: 'library' });

  const first = await submit(task);
  say('editor', `asks for ${SOURCES} sources, of which number ${MISSING} is missing`);
  const killed = await follow(first, { killAt: 5 });
  assert.deepEqual(killed.reasons, [
    'safety_check_passed',
    'callee_restarted',
    'recovered_from_checkpoint',
    'resource_unavailable',
  ]);
  // What was read but not checkpointed at the kill is read again: one source at most.
  assert.ok(killed.read.length <= MISSING, `read ${killed.read}`);
  assert.deepEqual([...new Set(killed.read)], range(1, MISSING - 1));
  const failure = failed(await first.result(), 'resource_unavailable');
  say('library', `fails after ${MISSING - 1} sources: ${failure.errorCode}`);

  write(MISSING);
  // A source takes 50 ms at least, so a second is too short for the rest of them.
  const second = await submit(continued(first, failure, { max_duration: 'PT1S' }));
  say('editor', 'puts the source there and continues in a new session, in too much of a hurry');
  const hurried = await follow(second);
  assert.deepEqual(hurried.read.slice(0, 1), [MISSING]);
  const timeout = failed(await second.result(), 'timeout');
  say('library', `is stopped after source ${hurried.read.at(-1)}: ${timeout.errorMessage}`);

  const third = await submit(continued(second, timeout));
  const rest = await follow(third);
  const outcome = await third.result();
  assert.deepEqual(outcome, { ...outcome, status: 'completed', outputs: { mentions: MENTIONS } });
  const all = [...new Set([...killed.read, ...hurried.read, ...rest.read])];
  assert.deepEqual(all, range(1, SOURCES));
  say('library', `continues with source ${rest.read[0]} and is done: ${MENTIONS} mentions`);
  console.log('\nNothing read in vain.');
} finally {
  library.kill('SIGKILL');
  rmSync(folder, { recursive: true });
}

async function startLibrary(): Promise<ChildProcess> {
  const child = fork(new URL('./callee.ts', import.meta.url), [url]);
  await once(child, 'message');
  return child;
}

/** Follows a session to its end, and kills its callee on the way if told so. */
async function follow(session: Session, { killAt }: { killAt?: number } = {}) {
  const read: number[] = [];
  const reasons: string[] = [];
  for await (const { payload } of session.events()) {
    if (payload.event_type === 'state_changed') reasons.push(String(payload.data.reason));
    if (payload.event_type !== 'progress') continue;
    read.push(Number(payload.data.message));
    if (read.length !== killAt) continue;
    const exited = once(library, 'exit');
    library.kill('SIGKILL');
    await exited;
    say('editor', `kills the library with SIGKILL after source ${killAt}, and opens it again`);
    library = await startLibrary();
  }
  return { read, reasons };
}

type Failure = Extract<Outcome, { status: 'failed' }>;

function failed(outcome: Outcome, errorCode: string): Failure {
  assert.equal(outcome.status, 'failed');
  assert.equal(outcome.errorCode, errorCode);
  return outcome;
}

/** The same task as a new session that begins where another one failed (`resume/1`). */
function continued(session: Session, { lastCheckpoint }: Failure, constraints: wire.TaskConstraints = {}): Task {
  assert.ok(lastCheckpoint);
  const from = { session_id: session.sessionId, checkpoint_id: lastCheckpoint, required: true };
  return { ...task, constraints, extensions: { 'resume/1': from } };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
