/**
 * Four samples through two callees, in parallel: one of them is paused for a while, another one aborted.
 * Ends with code 0 only if what it tells is true.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore, openTransport } from 'hcp-sdk';
import { createCaller, type Session, type Task } from 'hcp-sdk/caller';

const FRAMES = 30;
const say = (who: string, what: string) => console.log(`  ${who.padEnd(10)} ${what}`);
const folder = mkdtempSync(join(tmpdir(), 'hcp-pipeline-'));
const url = `sqlite:${join(folder, 'hcp.db')}`;
const callees = ['scanner', 'analyst'].map((name) => fork(new URL(`${name}.ts`, import.meta.url), [url, folder]));
try {
  await Promise.all(callees.map((callee) => once(callee, 'message')));
  await using transport = await openTransport(url);
  await using store = await openStore(url);
  await using caller = createCaller({ callerId: 'conductor', transport, store });

  const submit = (calleeId: string, capability: string, task: Pick<Task, 'inputs' | 'extensions'>) =>
    caller.submit({ capability, intent: `${capability} for the series`, ...task }, { calleeId });
  const scan = (sample: number) =>
    submit('scanner', 'lab.scan', { inputs: { sample, frames: FRAMES }, extensions: { 'pause/1': {} } });

  /** What the scanner has made of a sample: where to fetch it, and what it must be. */
  async function fetchable(scanned: Session): Promise<{ url: unknown; checksum: unknown }> {
    const outcome = await scanned.result();
    assert.equal(outcome.status, 'completed');
    const [artifact] = outcome.message.payload.artifacts ?? [];
    assert.ok(artifact);
    const address = await (await submit('scanner', 'hcp.artifact', { inputs: { uri: artifact.uri } })).result();
    assert.equal(address.status, 'completed');
    assert.equal(address.outputs.checksum, artifact.checksum);
    return { url: address.outputs.url, checksum: artifact.checksum };
  }

  /** From a scan to its mean: the outputs of one callee are the inputs of the other. */
  async function analyse(sample: number, scanned: Session): Promise<void> {
    const analysed = await submit('analyst', 'lab.analyse', { inputs: await fetchable(scanned) });
    const outcome = await analysed.result();
    assert.equal(outcome.status, 'completed');
    assert.deepEqual(outcome.outputs, { mean: 1000 * sample + (FRAMES + 1) / 2 });
    say('analyst', `sample ${sample} has the mean ${outcome.outputs.mean}`);
  }

  async function pauseThird(): Promise<Session> {
    const third = await scan(3);
    await third.pause({ reason: 'The lamp is needed elsewhere' });
    say('conductor', 'pauses sample 3');
    return third;
  }

  async function abortFourth(): Promise<void> {
    const fourth = await scan(4);
    const file = join(folder, `${fourth.sessionId}.csv`);
    for await (const { payload } of fourth.events()) if (payload.event_type === 'progress') break;
    assert.ok(existsSync(file), 'there is a scan, half done');
    assert.deepEqual(await fourth.abort('Contaminated'), { status: 'aborted' });
    assert.ok(!existsSync(file), 'and nothing of it after the abort');
    say('conductor', 'aborts sample 4: its half-done scan is gone');
  }

  const [first, second] = await Promise.all([scan(1), scan(2)]);
  const [third] = await Promise.all([pauseThird(), abortFourth(), analyse(1, first), analyse(2, second)]);
  assert.equal(third.state, 'PAUSED', 'while the others are done');
  await third.resume('The lamp is free');
  say('conductor', 'resumes sample 3');
  await analyse(3, third);

  const { url: elsewhere } = await fetchable(first);
  const { checksum } = await fetchable(second);
  const mixedUp = await (await submit('analyst', 'lab.analyse', { inputs: { url: elsewhere, checksum } })).result();
  assert.deepEqual(mixedUp, { ...mixedUp, status: 'failed', errorCode: 'input_error' });
  say('analyst', 'refuses sample 1 under the checksum of sample 2');
  console.log('\nEach sample as it should.');
} finally {
  for (const callee of callees) callee.kill();
  rmSync(folder, { recursive: true });
}
