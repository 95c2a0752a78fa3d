/** A (simulated) robot arm behind the safety contract: graded, approved, bounded, stopped. */
import assert from 'node:assert/strict';
import type { Store, Transport, wire } from 'hcp-sdk';
import {
  acceptKnownCallers,
  type Callee,
  createCallee,
  type Executor,
  type KeyRing,
  type RiskAssessment,
} from 'hcp-sdk/callee';

/** What must never reach further than 850 mm: there is a wall. */
export const arm = {
  reach: 0,
  isBraked: false,
  move(to: number) {
    assert.ok(to <= 850, 'The arm was driven into the wall');
    this.reach = to;
    this.isBraked = false;
    console.log(`  arm        reaches ${to} mm`);
  },
  stop() {
    this.isBraked = true;
    console.log('  arm        emergency stop: brakes on');
  },
};

const declaration: wire.Capability = {
  name: 'arm.reach',
  version: '1.0.0',
  description: 'Moves the gripper outwards',
  input_schema: {
    type: 'object',
    required: ['reach'],
    additionalProperties: false,
    properties: {
      reach: { type: 'number', minimum: 0, maximum: 900, description: 'mm' },
      speed: { type: 'number', exclusiveMinimum: 0, maximum: 500, description: 'mm/s' },
    },
  },
  output_schema: { type: 'object', required: ['reached'] },
  safety: { risk_ceiling: 'R4', requires_human_approval: true, involves_physical_resources: true },
  constraints: { max_duration: 'PT1H', concurrent_limit: 1 },
};

const risk: RiskAssessment = {
  baseline: 'R2',
  rules: [
    {
      when: { properties: { inputs: { properties: { reach: { exclusiveMinimum: 400 } } } } },
      level: 'R4',
      because: 'Beyond 400 mm the arm is where people walk',
    },
  ],
};

const envelope: wire.SafetyEnvelope = {
  parameters: {
    reach: { max: 850, unit: 'mm', hard_limit: true },
    speed: { max: 250, unit: 'mm/s', hard_limit: false },
  },
  emergency_procedures: { reach: 'stop' },
};

/** Outwards in strides of 200 mm, each of them asked for before it is made. */
const reachOut: Executor = async ({ inputs }, run) => {
  const goal = Number(inputs.reach);
  const speed = Number(inputs.speed ?? 100);
  for (let reach = Math.min(200, goal); ; reach = Math.min(reach + 200, goal)) {
    await run.guard.act('move', { reach, speed });
    arm.move(reach);
    if (reach === goal) return { outputs: { reached: goal } };
  }
};

/** The callee of the workshop; started, and closed by whoever asked for it. */
export async function startWorkshop(transport: Transport, store: Store, keys: KeyRing): Promise<Callee> {
  const policy = acceptKnownCallers({ alpha: { capabilities: ['arm.reach'], riskLimit: 'R4' } });
  const callee = createCallee({ calleeId: 'workshop', transport, store, policy, keys });
  callee.capability(declaration, reachOut, { risk, envelope, procedures: { stop: () => arm.stop() } });
  await callee.start();
  return callee;
}
