import type { TaskFailedPayload, WarningData } from '../schemas/types.ts';
import { advance, isTerminal, type Move, type SessionState } from '../session/lifecycle.ts';
import type { SessionRecord, Violation } from '../session/record.ts';
import { formatDuration } from '../shared/durations.ts';
import { type HcpError, isHcpError } from '../shared/errors.ts';
import type { Approval } from './approvals/approval.ts';
import type { OfferedCapability } from './capabilities.ts';
import type { Terms } from './gate/gate.ts';
import { isTaskFailure, type TaskResult } from './run.ts';
import type { Saying } from './session-writer.ts';

/** The start of every session: accepted, created, running (D-07). */
export function acceptance(
  terms: Terms,
  session: { readonly token: string; readonly inReplyTo: string; readonly abortTimeoutMs: number },
): Saying[] {
  const { token, inReplyTo, abortTimeoutMs } = session;
  return [
    {
      type: 'task_accepted',
      payload: {
        session_token: token,
        risk_level: terms.riskLevel,
        data_classification: terms.dataClassification,
        safety_envelope: terms.safetyEnvelope,
        constraints: {
          max_duration: formatDuration(terms.maxDurationMs),
          abort_timeout: formatDuration(abortTimeoutMs),
        },
        in_reply_to: inReplyTo,
        ...(terms.extensions.length > 0 && {
          extensions: Object.fromEntries(terms.extensions.map((name) => [name, {}])),
        }),
      },
    },
    {
      event: 'session_created',
      data: { state: 'PENDING', risk_level: terms.riskLevel, session_token: token },
    },
    stateChanged('PENDING', 'RUNNING', 'safety_check_passed'),
  ];
}

export function stateChanged(from: SessionState, to: SessionState, reason: string): Saying {
  return { event: 'state_changed', data: { from_state: from, to_state: to, reason } };
}

/** What a session says while it makes `moves`: its result before the terminal state, `session_closed` last (D-09). */
export function journey(
  from: SessionState,
  moves: readonly Move[],
  reason: string,
  result?: Saying,
): { readonly state: SessionState; readonly sayings: readonly Saying[] } {
  const sayings: Saying[] = [];
  let state = from;
  for (const move of moves) {
    const to = advance(state, move);
    if (isTerminal(to) && result !== undefined) sayings.push(result);
    sayings.push(stateChanged(state, to, reason));
    state = to;
  }
  if (state === 'COMPLETED' || state === 'FAILED' || state === 'ABORTED') {
    sayings.push({ event: 'session_closed', data: { final_state: state, reason } });
  }
  return { state, sayings };
}

/** A human decides (P3). */
export function approvalPending({ messageId }: SessionRecord, { expiresAt, riskLevel }: Approval): Saying {
  const expires_at = new Date(expiresAt).toISOString();
  return { event: 'x-approval-pending', data: { in_reply_to: messageId, expires_at, assessed_risk_level: riskLevel } };
}

/** An action beyond a soft limit. */
export function beyondLimit({ action, condition, message }: Violation): WarningData {
  return { code: SOFT_LIMIT, message, details: { action, parameter: condition } };
}

export const SOFT_LIMIT = 'safety_limit';

/** A hard limit was broken. */
export function violated({ action, condition, message }: Violation): TaskFailedPayload {
  return {
    error_code: 'safety_violation',
    error_message: cutShort(message),
    error_details: { recoverable: false, action, condition },
  };
}

export function tookTooLong(recoverable: boolean): TaskFailedPayload {
  return {
    error_code: 'timeout',
    error_message: 'The task took longer than it may',
    error_details: { recoverable },
  };
}

export const SAID_NOTHING: TaskFailedPayload = {
  error_code: 'timeout',
  error_message: 'The task said nothing for too long',
};

/** How a thrown error is told to the caller (HCP-128). */
export function failureOf(error: unknown): TaskFailedPayload {
  const failure = isTaskFailure(error) ? error : undefined;
  return {
    error_code: failure?.errorCode ?? (isOurFault(error) ? 'internal_error' : 'execution_error'),
    error_message: messageOf(error, 'The task failed'),
    error_details: failure?.details ?? {},
    ...(failure?.partialOutputs && { partial_outputs: failure.partialOutputs }),
    ...(failure?.artifacts && { artifacts: [...failure.artifacts] }),
  };
}

/** The SDK's own trouble, unlike an executor that says what it must not (HCP-128). */
function isOurFault(error: unknown): boolean {
  return isHcpError(error) && /^(store|transport|publish|topology|queue)_/.test(error.code);
}

/** Whether something cannot be put into a message. */
export function isUnsayable(error: unknown): error is HcpError {
  return isHcpError(error, 'message_invalid') || isHcpError(error, 'message_too_large');
}

const LONGEST_STORY = 2000;

export function messageOf(error: unknown, otherwise: string): string {
  return cutShort(error instanceof Error && error.message !== '' ? error.message : otherwise);
}

/** The end of a session must fit into a message. */
function cutShort(message: string): string {
  return message.length <= LONGEST_STORY ? message : `${message.slice(0, LONGEST_STORY).toWellFormed()}…`;
}

/** Nobody can go on with a task after a restart. */
export function unrecoverable(capability: OfferedCapability | undefined): TaskFailedPayload {
  return {
    error_code: 'internal_error',
    error_message: capability
      ? 'The callee was restarted, and there is no checkpoint to continue from'
      : 'The callee was restarted without the capability this task needs',
  };
}

/** `result`: what is worth showing as partial outputs. */
export function invalidOutputs(fault: string, result?: TaskResult): TaskFailedPayload {
  const outputs: unknown = result?.outputs;
  const isObject = typeof outputs === 'object' && outputs !== null && !Array.isArray(outputs);
  return {
    error_code: 'execution_error',
    error_message: fault,
    error_details: { phase: 'output_validation' },
    ...(isObject && result && { partial_outputs: result.outputs }),
    ...(Array.isArray(result?.artifacts) && { artifacts: [...result.artifacts] }),
  };
}

/** Cleaning up took too long. */
export function late(timeoutMs: number): Saying[] {
  const message = `Cleaning up took more than ${formatDuration(timeoutMs)}`;
  return [{ event: 'warning', data: { code: 'abort_timeout', message, details: {} } }];
}

/** Cleaning up failed. */
export function unclean(error: unknown): Saying[] {
  const message = messageOf(error, 'Cleaning up failed');
  return [{ event: 'error', data: { code: 'cleanup_failed', message, recoverable: false } }];
}
