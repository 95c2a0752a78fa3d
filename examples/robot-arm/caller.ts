/** Asks for ever more of a robot arm, and audits what became of it. Ends with code 0 only if what it tells is true. */
import assert from 'node:assert/strict';
import { openStore, openTransport } from 'hcp-sdk';
import { createKeyRing, generateKey, verifyAudit, verifyEvidence } from 'hcp-sdk/callee';
import { applyCure, createCaller, type Session, type Task } from 'hcp-sdk/caller';
import { arm, startWorkshop } from './callee.ts';

const say = (who: string, what: string) => console.log(`  ${who.padEnd(10)} ${what}`);

await using transport = await openTransport('memory:');
await using store = await openStore('memory:');
const keys = await createKeyRing([await generateKey()]);
await using callee = await startWorkshop(transport, store, keys);

let tellPending = (_sessionId: string) => {};
const warnings: unknown[] = [];
await using caller = createCaller({
  ...{ callerId: 'alpha', transport, store },
  onApprovalPending: ({ sessionId }) => tellPending(sessionId),
  onEvent: ({ payload }) => {
    if (payload.event_type === 'warning') warnings.push(payload.data.code);
  },
});

/** How far, and how fast. */
function task(reach: number, speed = 100): Task {
  return { capability: 'arm.reach', intent: `Reach out to ${reach} mm at ${speed} mm/s`, inputs: { reach, speed } };
}

function submit(what: Task): Promise<Session> {
  say('alpha', what.intent);
  return caller.submit(what, { calleeId: 'workshop' });
}

/** Submits a task that has to wait for a human, who has her say. */
async function decided(what: Task, decision: 'approve' | 'deny', comment: string): Promise<Session> {
  const pending = new Promise<string>((resolve) => (tellPending = resolve));
  const submitted = submit(what);
  const sessionId = await pending;
  const [asked] = await callee.approvals.list();
  assert.equal(asked?.sessionId, sessionId);
  say('maria', `${decision} ${asked.riskLevel}: ${comment}`);
  await callee.approvals[decision](sessionId, { approver: 'maria', comment });
  return submitted;
}

const tooFar = await (await submit(task(2000))).result();
assert.equal(tooFar.status, 'rejected');
assert.ok(tooFar.cure);
say('workshop', `rejected: ${tooFar.reasonMessage}; proposes ${JSON.stringify(tooFar.cure)}`);
assert.equal(applyCure(task(2000), tooFar.cure).inputs.reach, 900);

const near = await (await submit(task(300))).result();
assert.deepEqual(near, { ...near, status: 'completed', outputs: { reached: 300 } });

const denied = await (await decided(task(500), 'deny', 'There are visitors')).result();
assert.deepEqual(denied, { ...denied, status: 'rejected', reasonCode: 'approval_denied' });
assert.equal(arm.reach, 300, 'what was denied was not done');

const far = await decided(task(600, 400), 'approve', 'The visitors are gone');
assert.deepEqual([(await far.result()).status, arm.reach], ['completed', 600]);
assert.deepEqual(new Set(warnings), new Set(['safety_limit']));
say('workshop', 'completed, with a warning: faster than it should');

const wall = await decided(task(880), 'approve', 'Did not think of the wall');
const failure = await wall.result();
assert.equal(failure.status, 'failed');
assert.deepEqual([failure.errorCode, arm.reach, arm.isBraked], ['safety_violation', 800, true]);
say('workshop', `failed: ${failure.errorMessage}`);

assert.deepEqual(await verifyAudit(store, 'workshop'), []);
const evidence = await callee.evidence(String(wall.sessionId));
assert.deepEqual((await verifyEvidence(evidence, { keys: await createKeyRing(keys.publicKeys()) })).findings, []);
assert.notDeepEqual((await verifyEvidence(evidence.replace('880', '800'), { keys })).findings, []);
say('auditor', 'the audit log is whole, the evidence is genuine, a changed byte is found');
console.log('\nNothing unsafe.');
