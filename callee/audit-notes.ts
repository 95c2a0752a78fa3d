import type { TaskSubmit, TaskSubmitPayload } from '../schemas/types.ts';
import { type AuditDraft, inputsHash } from '../session/audit/index.ts';
import type { SessionRecord, Violation } from '../session/record.ts';
import type { Approval } from './approvals/approval.ts';
import type { SessionCommand } from './authorisation.ts';
import type { Rejection } from './gate/gate.ts';

/** What goes on record of a session: who, what, which inputs; risk and result come with each note (HCP-312). */
function subject(record: SessionRecord, task: TaskSubmitPayload = requested(record)): Record<string, unknown> {
  return {
    caller_id: record.callerId,
    ...(record.userId !== undefined && { user_id: record.userId }),
    message_id: record.messageId,
    capability: task.capability,
    ...(record.version !== undefined && { version: record.version }),
    inputs_sha256: inputsHash(task),
  };
}

function requested({ request }: SessionRecord): TaskSubmitPayload {
  return (JSON.parse(request) as TaskSubmit).payload; // parsed and checked when it came
}

export function acceptedNotes(
  record: SessionRecord,
  task: TaskSubmitPayload,
  approval: Approval | undefined,
): AuditDraft[] {
  const { sessionId, riskLevel: risk_level, dataClassification: data_classification } = record;
  const approvers = approval?.votes.map(({ approver }) => approver);
  const details = { ...subject(record, task), result: 'accepted', risk_level, data_classification };
  return [
    { kind: 'decision', sessionId, details: { ...details, ...(approvers && { approvers }) } },
    ...(data_classification === 'T4' ? [accessNote(record, task, 'start')] : []),
  ];
}

export function rejectedNote(record: SessionRecord, task: TaskSubmitPayload, rejection: Rejection): AuditDraft {
  const { reason_code: result, reason_message: reason, assessed_risk_level: risk_level } = rejection;
  const details = { ...subject(record, task), result, reason, ...(risk_level && { risk_level }) };
  return { kind: 'decision', sessionId: record.sessionId, details };
}

export function approvalNote({ sessionId, callerId, subject, riskLevel, status }: Approval): AuditDraft {
  return { kind: 'approval', sessionId, details: { caller_id: callerId, status, subject, risk_level: riskLevel } };
}

/** The work goes on after a restart. */
export function accessAgainNotes(record: SessionRecord, task: TaskSubmitPayload): AuditDraft[] {
  return record.dataClassification === 'T4' ? [accessNote(record, task, 'restart')] : [];
}

/** T4 data is being looked at (HCP-313). */
function accessNote(record: SessionRecord, task: TaskSubmitPayload, when: 'start' | 'restart'): AuditDraft {
  const details = { ...subject(record, task), data_classification: record.dataClassification, when };
  return { kind: 'data_access', sessionId: record.sessionId, details };
}

export function abortNote(record: SessionRecord, reason: string | undefined): AuditDraft {
  const { sessionId, riskLevel: risk_level } = record;
  const details = { ...subject(record), risk_level, result: 'aborting', ...(reason !== undefined && { reason }) };
  return { kind: 'abort', sessionId, details };
}

export function refusedNote(
  { sessionId, callerId, state }: SessionRecord,
  command: SessionCommand,
  why: string,
): AuditDraft {
  const { type, message_id } = command.message;
  const sender = {
    ...(command.appId !== undefined && { app_id: command.appId }),
    ...(command.userId !== undefined && { user_id: command.userId }),
  };
  return {
    kind: 'command_refused',
    sessionId,
    details: { type, message_id, caller_id: callerId, state, ...sender, why },
  };
}

export function violationNote(record: SessionRecord, violation: Violation): AuditDraft {
  const { sessionId, riskLevel: risk_level } = record;
  return { kind: 'violation', sessionId, details: { ...subject(record), risk_level, result: 'stopped', ...violation } };
}

export function emergencyNote({ sessionId }: SessionRecord, procedure: string, result: string): AuditDraft {
  return { kind: 'emergency', sessionId, details: { procedure, result } };
}

export function endNote({ sessionId, callerId, state }: SessionRecord, reason: string): AuditDraft {
  return { kind: 'ended', sessionId, details: { caller_id: callerId, state, reason } };
}
