import type {
  DataClassification,
  RiskLevel,
  SafetyEnvelope,
  TaskRejectedPayload,
  TaskSubmitPayload,
} from '../schemas/types.ts';
import { type Clock, delay } from '../shared/clock.ts';
import { parseDuration } from '../shared/durations.ts';
import { isHcpError } from '../shared/errors.ts';
import type { SchemaSandbox } from '../shared/foreign-schema/sandbox.ts';
import type { Logger } from '../shared/logger.ts';
import { type Capabilities, isVersionRange, type OfferedCapability } from './capabilities.ts';
import { negotiate } from './extensions.ts';

/** Who asks for what. */
export interface GateRequest {
  readonly callerId: string;
  /** The login the broker checked, if any. */
  readonly userId: string | undefined;
  readonly task: TaskSubmitPayload;
}

export type PolicyDecision =
  | {
      readonly accept: true;
      /** The highest risk this caller may ask for. @default 'R5' */
      readonly riskLimit?: RiskLevel;
      readonly safetyEnvelope?: SafetyEnvelope;
    }
  | { readonly accept: false; readonly reasonCode: string; readonly message: string; readonly suggestion?: string };

/** A vendor's own word on a task, before anything else is looked at. What it throws rejects the task. */
export type Policy = (request: GateRequest) => PolicyDecision | Promise<PolicyDecision>;

/** What a task may do, once accepted. */
export interface Terms {
  readonly capability: OfferedCapability;
  readonly riskLevel: RiskLevel;
  readonly dataClassification: DataClassification;
  readonly safetyEnvelope: SafetyEnvelope;
  readonly maxDurationMs: number;
  /** Names of those in force. */
  readonly extensions: readonly string[];
}

export type Rejection = Omit<TaskRejectedPayload, 'in_reply_to'>;
export type Judgement = { readonly terms: Terms } | { readonly rejection: Rejection };

/** The answer when judging fails: never a yes (V-53). */
export const UNJUDGED: Rejection = {
  reason_code: 'internal_error',
  reason_message: 'The callee could not judge the task',
  suggestion: 'Try again later',
};

const RISK_LEVELS: readonly unknown[] = ['R1', 'R2', 'R3', 'R4', 'R5'] satisfies RiskLevel[];

/** Serves the callers named, each up to its risk limit, and nobody else. */
export function acceptKnownCallers(
  callers: readonly string[] | Readonly<Record<string, { readonly riskLimit?: RiskLevel }>>,
): Policy {
  const known = new Map(Array.isArray(callers) ? callers.map((id) => [id, {}]) : Object.entries(callers));
  return ({ callerId }) => {
    const caller = known.get(callerId);
    if (caller) return { accept: true, ...caller };
    return {
      accept: false,
      reasonCode: 'unauthorized',
      message: 'This caller is not known here',
      suggestion: 'Ask the operator of this callee for access',
    };
  };
}

export interface GateParts {
  readonly policy: Policy;
  readonly capabilities: Capabilities;
  readonly sandbox: SchemaSandbox;
  readonly maxDurationMs: number;
  readonly gateTimeoutMs: number;
  /** Fires when the callee closes: whoever has the session next judges it. */
  readonly closing: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Decides whether a task may run, the first failure deciding (HCP-301). What fails inside rejects the task; throws only
 * when the callee closes.
 */
export async function judge(parts: GateParts, request: GateRequest): Promise<Judgement> {
  const { closing, gateTimeoutMs } = parts;
  const done = new AbortController();
  try {
    const tooLong = delay(parts.clock, gateTimeoutMs, AbortSignal.any([done.signal, closing])).then(() => {
      throw new Error(`The gate took more than ${gateTimeoutMs} ms`);
    });
    return await Promise.race([consider(parts, request), tooLong]);
  } catch (error) {
    closing.throwIfAborted();
    parts.logger.error({ err: error, caller_id: request.callerId }, 'The gate failed: the task is rejected');
    return { rejection: UNJUDGED };
  } finally {
    done.abort();
  }
}

async function consider(parts: GateParts, request: GateRequest): Promise<Judgement> {
  const decision = await parts.policy(request);
  if (decision?.accept !== true) return refusedByPolicy(decision);
  const { riskLimit = 'R5', safetyEnvelope = {} } = decision;
  // Compared with anything else, every risk would look small enough.
  if (!RISK_LEVELS.includes(riskLimit)) throw new TypeError('The policy must give riskLimit as R1 … R5');
  const { task } = request;
  const found = findCapability(parts.capabilities, task);
  if ('rejection' in found) return found;
  const unfit = await inputFault(found, task, parts.sandbox);
  if (unfit !== undefined) return rejected('invalid_input', unfit, `Correct ${unfit.split(' ')[0]} and submit again`);
  const agreed = negotiate(task, found.declaration);
  if ('lacking' in agreed) {
    const { lacking, offered } = agreed;
    return rejected('invalid_input', `/payload/extensions requires ${lacking}`, `Offered are ${offered.join(', ')}`);
  }
  const { risk_ceiling: riskLevel, requires_human_approval: needsApproval } = found.declaration.safety;
  if (riskLevel > riskLimit) return tooRisky(riskLevel, riskLimit);
  // Until there is a desk to ask a human at, what needs one is not done.
  if (needsApproval && riskLevel >= 'R3') {
    return rejected('approval_denied', 'The task needs human approval, which this callee cannot give');
  }
  return {
    terms: {
      capability: found,
      riskLevel,
      dataClassification: task.constraints?.data_classification ?? 'T2',
      safetyEnvelope,
      maxDurationMs: Math.min(
        parseDuration(task.constraints?.max_duration ?? '') ?? Number.POSITIVE_INFINITY,
        found.maxDurationMs,
        parts.maxDurationMs,
      ),
      extensions: agreed.inForce,
    },
  };
}

/** Anything but a clear yes is a no. */
function refusedByPolicy(decision: PolicyDecision | undefined): Judgement {
  if (decision?.accept === false && typeof decision.reasonCode === 'string') {
    return rejected(decision.reasonCode, decision.message, decision.suggestion);
  }
  return rejected('forbidden', 'The policy of this callee gave no clear answer');
}

function findCapability(
  capabilities: Capabilities,
  task: TaskSubmitPayload,
): OfferedCapability | { rejection: Rejection } {
  const { capability: name, capability_version: range } = task;
  const versions = capabilities.versions(name);
  if (versions.length === 0) {
    return rejected(
      'capability_not_found',
      'There is no such capability',
      `Offered are ${capabilities.names.join(', ')}`,
    );
  }
  if (range !== undefined && !isVersionRange(range)) {
    return rejected(
      'invalid_input',
      '/payload/capability_version is no range of versions',
      'Use a range such as ^1.0.0',
    );
  }
  return (
    capabilities.match(task) ??
    rejected('capability_version_unsupported', 'No version in that range', `Offered are ${versions.join(', ')}`)
  );
}

async function inputFault(
  capability: OfferedCapability,
  task: TaskSubmitPayload,
  sandbox: SchemaSandbox,
): Promise<string | undefined> {
  const fault = capability.inputFault(task.inputs);
  if (fault !== undefined) return fault;
  const schema = task.expected_output?.schema;
  if (schema === undefined) return undefined;
  try {
    await sandbox.check(schema);
    return undefined;
  } catch (error) {
    if (isHcpError(error)) return `/payload/expected_output/schema cannot be used: ${error.message}`;
    throw error;
  }
}

function tooRisky(assessed: RiskLevel, limit: RiskLevel): Judgement {
  return {
    rejection: {
      reason_code: 'risk_too_high',
      reason_message: `The task is rated ${assessed}, and this caller may ask for ${limit} at most`,
      assessed_risk_level: assessed,
      suggestion: `Ask for a task rated ${limit} or lower, or for a higher limit`,
    },
  };
}

function rejected(code: string, message: string, suggestion?: string): { rejection: Rejection } {
  return {
    rejection: { reason_code: code, reason_message: message, ...(suggestion !== undefined && { suggestion }) },
  };
}
