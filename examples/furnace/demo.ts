/** A furnace that is graded, approved, bounded and on record. Ends with code 0 only if what it tells is true. */
import assert from 'node:assert/strict';
import { openStore, openTransport, type wire } from 'hcp-sdk';
import {
  acceptKnownCallers,
  createCallee,
  createKeyRing,
  type Executor,
  generateKey,
  type RiskAssessment,
  verifyAudit,
  verifyEvidence,
} from 'hcp-sdk/callee';
import { applyCure, createCaller, type Task } from 'hcp-sdk/caller';

const say = (who: string, what: string) => console.log(`  ${who.padEnd(10)} ${what}`);

/** What must never be hotter than 850 °C. */
const furnace = {
  temperature: 20,
  heat(to: number) {
    assert.ok(to <= 850, 'The furnace was driven beyond its limit');
    this.temperature = to;
    say('furnace', `heats to ${to} °C`);
  },
  coolDown() {
    this.temperature = 20;
    say('furnace', 'emergency: cooled down');
  },
};

const declaration: wire.Capability = {
  name: 'furnace.heat',
  version: '1.0.0',
  description: 'Heats a sample',
  input_schema: {
    type: 'object',
    required: ['temperature'],
    additionalProperties: false,
    properties: { temperature: { type: 'number', minimum: 20, maximum: 900 } },
  },
  output_schema: { type: 'object', required: ['reached'] },
  safety: { risk_ceiling: 'R4', requires_human_approval: true, involves_physical_resources: true },
  constraints: { max_duration: 'PT8H', concurrent_limit: 1 },
};

const risk: RiskAssessment = {
  baseline: 'R2',
  rules: [
    {
      when: { properties: { inputs: { properties: { temperature: { exclusiveMinimum: 400 } } } } },
      level: 'R4',
      because: 'Above 400 °C the tube can burst',
    },
  ],
};

const envelope: wire.SafetyEnvelope = {
  parameters: { temperature: { max: 850, unit: '°C', hard_limit: true } },
  emergency_procedures: { temperature: 'cool_down' },
};

const heat: Executor = async ({ inputs }, run) => {
  const temperature = Number(inputs.temperature);
  await run.guard.act('heat', { temperature });
  furnace.heat(temperature);
  return { outputs: { reached: temperature } };
};

await using transport = await openTransport('memory:');
await using store = await openStore('memory:');
const keys = await createKeyRing([await generateKey()]);
const policy = acceptKnownCallers({ alpha: { capabilities: ['furnace.heat'], riskLimit: 'R4' } });
await using callee = createCallee({ calleeId: 'lab', transport, store, policy, keys });
callee.capability(declaration, heat, { risk, envelope, procedures: { cool_down: () => furnace.coolDown() } });
await callee.start();

let tellPending = (_sessionId: string) => {};
await using caller = createCaller({
  ...{ callerId: 'alpha', transport, store },
  onApprovalPending: ({ sessionId }) => tellPending(sessionId),
});
const task = (temperature: number): Task => ({
  ...{ capability: 'furnace.heat', intent: `Heat to ${temperature} °C`, inputs: { temperature } },
});
const submit = (what: Task) => {
  say('alpha', what.intent);
  return caller.submit(what, { calleeId: 'lab' });
};

const refused = await (await submit(task(2000))).result();
assert.equal(refused.status, 'rejected');
assert.ok(refused.cure);
say('lab', `rejected: ${refused.reasonMessage}; proposes ${JSON.stringify(refused.cure)}`);
assert.deepEqual(applyCure(task(2000), refused.cure).inputs, { temperature: 900 });

const mild = await (await submit(task(300))).result();
assert.deepEqual(mild, { ...mild, status: 'completed', outputs: { reached: 300 } });

const hot = await approved(task(600));
assert.deepEqual([(await hot.result()).status, furnace.temperature], ['completed', 600]);

const tooHot = await approved(task(880));
const failure = await tooHot.result();
assert.equal(failure.status, 'failed');
assert.deepEqual([failure.errorCode, furnace.temperature], ['safety_violation', 20]);
say('lab', `failed: ${failure.errorMessage}`);

assert.deepEqual(await verifyAudit(store, 'lab'), []);
const evidence = await callee.evidence(String(tooHot.sessionId));
assert.deepEqual((await verifyEvidence(evidence, { keys: await createKeyRing(keys.publicKeys()) })).findings, []);
assert.notDeepEqual((await verifyEvidence(evidence.replace('880', '800'), { keys })).findings, []);
say('auditor', 'the audit log is whole, the evidence is genuine, a changed byte is found');
console.log('\nNothing unsafe.');

/** Submits a task that has to wait for a human, who agrees. */
async function approved(what: Task) {
  const pending = new Promise<string>((resolve) => (tellPending = resolve));
  const submitted = submit(what);
  const sessionId = await pending;
  const [asked] = await callee.approvals.list();
  assert.equal(asked?.sessionId, sessionId);
  say('maria', `approves ${asked.riskLevel}: "${asked.task.intent}"`);
  await callee.approvals.approve(sessionId, { approver: 'maria', comment: 'Sample checked' });
  return submitted;
}
