import type { RiskLevel, TaskCompleted, TaskFailed, TaskRejected } from '../schemas/types.ts';
import { missingBefore, type Range } from '../session/arrival.ts';
import type { PatchOperation } from '../shared/json-patch.ts';
import { cureOf } from './cure.ts';
import type { Follow } from './follow.ts';

/** How a task ended. */
export type Outcome =
  | { readonly status: 'completed'; readonly outputs: Record<string, unknown>; readonly message: TaskCompleted }
  | {
      readonly status: 'failed';
      readonly errorCode: string;
      readonly errorMessage: string;
      /** Where the work could be taken up by a new task, if the callee named one. */
      readonly lastCheckpoint: string | undefined;
      readonly message: TaskFailed;
    }
  | { readonly status: 'aborted' }
  | {
      readonly status: 'rejected';
      readonly reasonCode: string;
      readonly reasonMessage: string;
      /** What to change to be accepted, in words. */
      readonly suggestion: string | undefined;
      readonly assessedRiskLevel: RiskLevel | undefined;
      /** The same as changes to the task, for `applyCure`: a proposal, never applied by itself. */
      readonly cure: readonly PatchOperation[] | undefined;
      readonly message: TaskRejected;
    };

/**
 * What is known of the end of a session, in whatever order it came (HCP-228): a result counts once no event is held back
 * before it (HCP-221), an abort with its `session_closed`. `anyway`: what is missing will not come any more.
 */
export function outcomeOf(told: Follow, isQuiet: boolean, anyway = false): Outcome | undefined {
  const { result, finalState } = told;
  if (finalState === 'ABORTED') return { status: 'aborted' };
  if (result === undefined) return undefined;
  if (!anyway && (!isQuiet || missingTail(told) !== undefined)) return undefined;
  if (result.type === 'task_completed')
    return { status: 'completed', outputs: result.payload.outputs, message: result };
  const { error_code: errorCode, error_message: errorMessage, error_details: details } = result.payload;
  return { status: 'failed', errorCode, errorMessage, lastCheckpoint: details?.last_checkpoint, message: result };
}

export function rejection(message: TaskRejected): Outcome {
  const { payload } = message;
  return {
    status: 'rejected',
    reasonCode: payload.reason_code,
    reasonMessage: payload.reason_message,
    suggestion: payload.suggestion,
    assessedRiskLevel: payload.assessed_risk_level,
    cure: cureOf(message),
    message,
  };
}

/** The events before the result that have not come, where `stream/1` is in force. */
export function missingTail({ result, cursor }: Follow): Range | undefined {
  const extensions = result?.payload.extensions as Record<string, { last_sequence?: unknown }> | undefined;
  const last = extensions?.['stream/1']?.last_sequence;
  return typeof last === 'number' && last > cursor ? missingBefore(last + 1, cursor) : undefined;
}
