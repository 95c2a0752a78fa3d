import type {
  DataClassification,
  RiskLevel,
  SafetyEnvelope,
  TaskRejectedPayload,
  TaskSubmitPayload,
} from '../../schemas/types.ts';
import type { Checkpoint } from '../../session/checkpoints.ts';
import { type Clock, delay } from '../../shared/clock.ts';
import { parseDuration } from '../../shared/durations.ts';
import { isHcpError } from '../../shared/errors.ts';
import { applyPatch, type PatchOperation } from '../../shared/json-patch.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import type { OfferedCapability } from '../capabilities.ts';
import { Case, CHECKS, type CheckParts, type Objection } from './checks.ts';
import { GATE_STEPS, type GateRequest, type GateStep, type Refusal } from './policy.ts';

/** What a task may do, once accepted. */
export interface Terms {
  readonly capability: OfferedCapability;
  readonly riskLevel: RiskLevel;
  readonly dataClassification: DataClassification;
  readonly safetyEnvelope: SafetyEnvelope;
  readonly maxDurationMs: number;
  /** Names of those in force. */
  readonly extensions: readonly string[];
  /** The work of an earlier session goes on from here. */
  readonly resumeFrom: Checkpoint | undefined;
}

export type Rejection = Omit<TaskRejectedPayload, 'in_reply_to'>;
export type Judgement = { readonly terms: Terms } | { readonly rejection: Rejection };

/** The answer when judging fails: never a yes (V-53). */
export const UNJUDGED: Rejection = {
  reason_code: 'internal_error',
  reason_message: 'The callee could not judge the task',
  suggestion: 'Try again later',
};

export interface GateParts extends CheckParts {
  readonly maxDurationMs: number;
  readonly gateTimeoutMs: number;
  /** Fires when the callee closes: whoever has the session next judges it. */
  readonly closing: AbortSignal;
  readonly clock: Clock;
}

/**
 * Decides whether a task may run, the first failure deciding (HCP-301). What fails inside rejects the task; throws only
 * when the callee closes.
 */
export async function judge(parts: GateParts, request: GateRequest, sessionId: string): Promise<Judgement> {
  const { closing, gateTimeoutMs } = parts;
  const done = new AbortController();
  try {
    const tooLong = delay(parts.clock, gateTimeoutMs, AbortSignal.any([done.signal, closing])).then(() => {
      throw new Error(`The gate took more than ${gateTimeoutMs} ms`);
    });
    return await Promise.race([consider(parts, request, sessionId), tooLong]);
  } catch (error) {
    closing.throwIfAborted();
    parts.logger.error({ err: error, caller_id: request.callerId }, 'The gate failed: the task is rejected');
    return { rejection: UNJUDGED };
  } finally {
    done.abort();
  }
}

async function consider(parts: GateParts, request: GateRequest, sessionId: string): Promise<Judgement> {
  const judged = new Case(parts, request, sessionId);
  const objection = await firstObjection(judged);
  if (objection === undefined) return { terms: termsOf(parts, judged) };
  const patch = wantsCure(request.task) ? await cureOf(judged, objection) : undefined;
  return {
    rejection: {
      ...rejectionOf(objection),
      ...(judged.risk && { assessed_risk_level: judged.risk.level }),
      ...(patch && { extensions: { 'cure/1': { patch } } }),
    },
  };
}

export function rejectionOf({ reasonCode, message, suggestion }: Refusal): Rejection {
  return { reason_code: reasonCode, reason_message: message, ...(suggestion !== undefined && { suggestion }) };
}

async function firstObjection(judged: Case): Promise<Objection | undefined> {
  for (const step of GATE_STEPS) {
    const objection = (await CHECKS[step](judged)) ?? (await vendorObjection(judged, step));
    if (objection !== undefined) return objection;
  }
  return undefined;
}

async function vendorObjection({ parts, request }: Case, step: GateStep): Promise<Objection | undefined> {
  for (const vendor of parts.policy.checks) {
    const answer: unknown = vendor.after === step ? await vendor.check(request) : undefined;
    if (answer !== undefined) return isRefusal(answer) ? answer : UNCLEAR;
  }
  return undefined;
}

/** Anything but a clear yes is a no. */
const UNCLEAR: Refusal = { reasonCode: 'forbidden', message: 'The policy of this callee gave no clear answer' };

function isRefusal(answer: unknown): answer is Refusal {
  return (
    typeof answer === 'object' && answer !== null && 'reasonCode' in answer && typeof answer.reasonCode === 'string'
  );
}

function termsOf({ maxDurationMs }: GateParts, judged: Case): Terms {
  const { capability, task } = judged;
  return {
    capability,
    riskLevel: judged.risk.level,
    dataClassification: judged.dataClassification,
    safetyEnvelope: judged.envelope,
    maxDurationMs: Math.min(
      parseDuration(task.constraints?.max_duration ?? '') ?? Number.POSITIVE_INFINITY,
      capability.maxDurationMs,
      maxDurationMs,
    ),
    extensions: judged.extensions,
    resumeFrom: judged.resumeFrom,
  };
}

function wantsCure({ extensions = {} }: TaskSubmitPayload): boolean {
  return Object.hasOwn(extensions, 'cure/1');
}

const MOST_CURES = 5;

/** Changes that make the task pass: tried before they are told, however many objections come one behind the other. */
async function cureOf(judged: Case, first: Objection): Promise<readonly PatchOperation[] | undefined> {
  const patch: PatchOperation[] = [];
  let objection: Objection | undefined = first;
  for (let tries = 0; objection !== undefined; tries++) {
    if (objection.cure === undefined || tries === MOST_CURES) return undefined;
    patch.push(...objection.cure);
    const task = patched(judged.task, patch);
    if (task === undefined) return undefined;
    objection = await firstObjection(new Case(judged.parts, { ...judged.request, task }, judged.sessionId));
  }
  return patch;
}

/** The task with the changes; `undefined` when a vendor's do not fit it, or leave no task. */
function patched(task: TaskSubmitPayload, patch: readonly PatchOperation[]): TaskSubmitPayload | undefined {
  try {
    const payload = applyPatch(task, patch) as TaskSubmitPayload; // if it is none, no message can be built of it
    buildMessage({ type: 'task_submit', sessionId: null, senderId: task.caller_id, payload });
    return payload;
  } catch (error) {
    if (error instanceof TypeError || isHcpError(error)) return undefined;
    throw error;
  }
}
