import type { SafetyEnvelope, TaskSubmitPayload } from '../../schemas/types.ts';
import type { Checkpoint } from '../../session/checkpoints.ts';
import { isHcpError } from '../../shared/errors.ts';
import type { SchemaSandbox } from '../../shared/foreign-schema/sandbox.ts';
import type { PatchOperation } from '../../shared/json-patch.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { type Capabilities, isVersionRange, type OfferedCapability } from '../capabilities.ts';
import { negotiate } from '../extensions.ts';
import type { Slots } from './capacity.ts';
import { cureInputs } from './input-cure.ts';
import {
  type CallerRights,
  type GateRequest,
  type GateStep,
  mayUse,
  type Refusal,
  type ResolvedPolicy,
  rightsOf,
  vouchedFor,
} from './policy.ts';
import { checkpointToResume, type ResumptionParts } from './resumption.ts';
import type { AssessedRisk } from './risk.ts';

/** What the checks look at beside the task. */
export interface CheckParts extends ResumptionParts {
  readonly policy: ResolvedPolicy;
  readonly capabilities: Capabilities;
  readonly sandbox: SchemaSandbox;
  readonly slots: Slots;
  readonly link: Transport['link'];
}

/** A task being judged. Each check fills in what it found, and those behind it rely on that. */
export class Case {
  readonly parts: CheckParts;
  readonly request: GateRequest;
  readonly sessionId: string;
  rights!: Required<CallerRights>;
  capability!: OfferedCapability;
  extensions!: readonly string[];
  risk!: AssessedRisk;
  envelope!: SafetyEnvelope;
  resumeFrom: Checkpoint | undefined;

  constructor(parts: CheckParts, request: GateRequest, sessionId: string) {
    this.parts = parts;
    this.request = request;
    this.sessionId = sessionId;
  }

  get task(): TaskSubmitPayload {
    return this.request.task;
  }

  get dataClassification() {
    return this.task.constraints?.data_classification ?? this.parts.policy.defaultDataClassification;
  }
}

/** Why not, and perhaps the changes to the task that would help. */
export interface Objection extends Refusal {
  readonly cure?: readonly PatchOperation[];
}

export type Check = (judged: Case) => Objection | undefined | Promise<Objection | undefined>;

/** The gate, in the order of HCP-301: the first objection decides. Structure comes before, approval and token after. */
export const CHECKS: Readonly<Record<GateStep, Check>> = {
  identity: checkIdentity,
  access: checkAccess,
  capability: checkCapability,
  data: checkData,
  inputs: checkInputs,
  risk: checkRisk,
  capacity: checkCapacity,
};

async function checkIdentity(judged: Case): Promise<Objection | undefined> {
  const { parts, request } = judged;
  const { policy } = parts;
  const vouched = vouchedFor(policy, request.userId);
  if (vouched === undefined && policy.identity === 'login') {
    return {
      reasonCode: 'unauthorized',
      message: 'The broker does not say who sent this',
      suggestion: 'Publish with user_id set to your login',
    };
  }
  if (vouched !== undefined && vouched !== request.task.caller_id) {
    return {
      reasonCode: 'unauthorized',
      message: 'This login belongs to another caller',
      suggestion: 'Submit under the caller_id of your own login',
    };
  }
  const rights = await rightsOf(policy, request);
  if (rights === undefined) {
    return {
      reasonCode: 'unauthorized',
      message: 'This caller is not known here',
      suggestion: 'Ask the operator of this callee for access',
    };
  }
  judged.rights = rights;
  return undefined;
}

function checkAccess({ rights, task }: Case): Objection | undefined {
  if (mayUse(rights, task.capability)) return undefined;
  return {
    reasonCode: 'forbidden',
    message: 'This caller may not use that capability',
    suggestion: 'Ask the operator of this callee for access to it',
  };
}

function checkCapability(judged: Case): Objection | undefined {
  const { capabilities } = judged.parts;
  const { capability: name, capability_version: range } = judged.task;
  const versions = capabilities.versions(name);
  if (versions.length === 0) {
    return {
      reasonCode: 'capability_not_found',
      message: 'There is no such capability',
      suggestion: `Offered are ${capabilities.names.filter((known) => mayUse(judged.rights, known)).join(', ')}`,
    };
  }
  const cure = [{ op: 'replace', path: '/capability_version', value: capabilities.newest(name) }] as const;
  if (range !== undefined && !isVersionRange(range)) {
    return {
      reasonCode: 'invalid_input',
      message: '/payload/capability_version is no range of versions',
      suggestion: 'Use a range such as ^1.0.0',
      cure,
    };
  }
  const found = capabilities.match(judged.task);
  if (found === undefined) {
    return {
      reasonCode: 'capability_version_unsupported',
      message: 'No version in that range',
      suggestion: `Offered are ${versions.join(', ')}`,
      cure,
    };
  }
  judged.capability = found;
  return undefined;
}

/** HCP-313. Calling data less sensitive than it is would be no cure. */
function checkData({ parts, rights, dataClassification }: Case): Objection | undefined {
  if (dataClassification > rights.dataLimit) {
    return {
      reasonCode: 'forbidden',
      message: `This caller may send data up to ${rights.dataLimit}, not ${dataClassification}`,
      suggestion: `Send only data of class ${rights.dataLimit} or lower, or ask the operator for a higher limit`,
    };
  }
  if (dataClassification >= 'T3' && parts.link === 'plain') {
    return {
      reasonCode: 'forbidden',
      message: `This callee does not take ${dataClassification} data over a connection that others can read`,
      suggestion: 'Reach this callee over TLS (amqps:)',
    };
  }
  return undefined;
}

async function checkInputs(judged: Case): Promise<Objection | undefined> {
  const { parts, task, capability, request } = judged;
  const fault = capability.inputFault(task.inputs);
  if (fault !== undefined) {
    const cure = cureInputs(capability.inputSchema, task.inputs);
    return { ...invalidInput(fault, `Correct ${fault.split(' ')[0]} and submit again`), ...(cure && { cure }) };
  }
  const unusable = await schemaFault(parts.sandbox, task.expected_output?.schema);
  if (unusable !== undefined) return invalidInput(unusable, 'Correct /payload/expected_output/schema and submit again');
  const agreed = negotiate(task, capability.declaration, parts.capabilities.extensions);
  if ('lacking' in agreed) {
    return invalidInput(`/payload/extensions requires ${agreed.lacking}`, `Offered are ${agreed.offered.join(', ')}`);
  }
  judged.extensions = agreed.inForce;
  if (!agreed.inForce.includes('resume/1')) return undefined;
  judged.resumeFrom = await checkpointToResume(parts, {
    callerId: request.callerId,
    task,
    dataClassification: judged.dataClassification,
  });
  if (judged.resumeFrom !== undefined) return undefined;
  return invalidInput(
    '/payload/extensions/resume~11 names no checkpoint that this task can continue from',
    'Name a resumable checkpoint of an ended session of yours with the same capability',
  );
}

function invalidInput(message: string, suggestion: string): Objection {
  return { reasonCode: 'invalid_input', message, suggestion };
}

async function schemaFault(sandbox: SchemaSandbox, schema: object | undefined): Promise<string | undefined> {
  if (schema === undefined) return undefined;
  try {
    await sandbox.check(schema);
    return undefined;
  } catch (error) {
    if (isHcpError(error)) return `/payload/expected_output/schema cannot be used: ${error.message}`;
    throw error;
  }
}

async function checkRisk(judged: Case): Promise<Objection | undefined> {
  const { capability, rights, task, request } = judged;
  judged.risk = await capability.assess(request.callerId, task);
  const { level, findings } = judged.risk;
  const ceiling = capability.declaration.safety.risk_ceiling;
  const limit = rights.riskLimit < ceiling ? rights.riskLimit : ceiling;
  if (level <= limit) {
    judged.envelope = await capability.envelope(task);
    return undefined;
  }
  const tooHigh = findings.filter((finding) => finding.level > limit);
  const whose = rights.riskLimit < ceiling ? 'this caller may ask for' : 'this capability is for';
  const because = tooHigh.map((finding) => finding.because).join('; ');
  const cures = tooHigh.map(({ cure }) => cure);
  return {
    reasonCode: 'risk_too_high',
    message: `The task is rated ${level}, and ${whose} ${limit} at most${because && `: ${because}`}`,
    suggestion:
      tooHigh.map(({ suggestion }) => suggestion).find((text) => text !== undefined) ??
      `Ask for a task rated ${limit} or lower, or for a higher limit`,
    ...(cures.length > 0 && cures.every((cure) => cure !== undefined) && { cure: cures.flat() }),
  };
}

async function checkCapacity({ parts, capability, sessionId }: Case): Promise<Objection | undefined> {
  return (await parts.slots.isFull(capability.declaration, sessionId)) ? FULL : undefined;
}

/** All places are taken (D-39). */
export const FULL: Objection = {
  reasonCode: 'resource_unavailable',
  message: 'As many of these tasks run already as can run at once',
  suggestion: 'Submit again when one of them has ended',
};
