import type { TaskSubmitPayload } from '../schemas/types.ts';
import { copyCheckpoint } from '../session/checkpoints.ts';
import type { SessionRecord } from '../session/record.ts';
import type { BuiltMessage } from '../shared/messages/build.ts';
import type { Write } from '../shared/store/store.ts';
import { type Approval, endApproval, putApproval } from './approvals/approval.ts';
import { acceptedNotes, approvalNote, rejectedNote } from './audit-notes.ts';
import type { Rejection, Terms } from './gate/gate.ts';
import { acceptance, approvalPending } from './sayings.ts';
import type { Grant } from './session-token.ts';
import type { Step } from './session-writer.ts';

/** A step with its record. */
type DecisionStep = Step & { readonly record: SessionRecord };

/** What a session is let in with. */
export interface Admission {
  readonly terms: Terms;
  readonly grant: Grant;
  readonly abortTimeoutMs: number;
  /** Which of the places of its capability it takes, where these are limited. */
  readonly slot: number | undefined;
  /** What a human agreed to. */
  readonly approval: Approval | undefined;
}

/** A human decides: stored and, where the caller wants to know, told. */
export function approvalStep(record: SessionRecord, terms: Terms, approval: Approval): DecisionStep {
  const isTold = terms.extensions.includes('approval/1');
  // Asked anew, with the same time-out, it is still the one question the caller knows of.
  const isNews = isTold && !record.extensions.includes('approval/1');
  return {
    sayings: isNews ? [approvalPending(record, approval)] : [],
    record: { ...record, extensions: isTold ? ['approval/1'] : [] },
    writes: () => [putApproval(approval)],
    audit: [approvalNote(approval)],
  };
}

/** The task runs, on these terms. The approval is used up with it, and the checkpoint it continues from becomes its own. */
export function acceptanceStep(running: SessionRecord, task: TaskSubmitPayload, admission: Admission): DecisionStep {
  const { terms, grant, abortTimeoutMs, slot, approval } = admission;
  const { riskLevel, dataClassification, safetyEnvelope, maxDurationMs, extensions, resumeFrom } = terms;
  const { token, issuedAt, expiresAt } = grant;
  const record: SessionRecord = {
    ...running,
    ...{ token, riskLevel, dataClassification, safetyEnvelope, maxDurationMs, abortTimeoutMs, extensions, slot },
    version: terms.capability.declaration.version,
    runningSince: issuedAt,
    deadlineAt: expiresAt,
  };
  return {
    sayings: acceptance(terms, { token, inReplyTo: record.messageId, abortTimeoutMs }),
    record,
    writes: (built) => [
      keepAnswer(record, built),
      ...(approval ? [endApproval(approval, 'used')] : []),
      ...(resumeFrom ? [copyCheckpoint(record.sessionId, resumeFrom)] : []),
    ],
    audit: acceptedNotes(record, task, approval),
  };
}

/** The task is not done; with whatever else is over with it. */
export function rejectionStep(
  record: SessionRecord,
  task: TaskSubmitPayload,
  rejection: Rejection,
  writes: readonly Write[],
): DecisionStep {
  return {
    sayings: [{ type: 'task_rejected', payload: { ...rejection, in_reply_to: record.messageId } }],
    record,
    writes: (built) => [keepAnswer(record, built), ...writes],
    audit: [rejectedNote(record, task, rejection)],
  };
}

/** For whoever submits it again. */
function keepAnswer({ calleeId, callerId, messageId }: SessionRecord, [answer]: readonly BuiltMessage[]): Write {
  const body = answer?.body.toString() ?? null;
  return { patch: 'answers', key: [calleeId, callerId, messageId], set: { answer: body } };
}
