import type { RiskLevel, TaskSubmitPayload } from '../../schemas/types.ts';
import type { SessionRecord } from '../../session/record.ts';
import { canonicalJson } from '../../shared/canonical-json.ts';
import { sha256 } from '../../shared/sha256.ts';
import type { Row, Write } from '../../shared/store/store.ts';
import type { Terms } from '../gate/gate.ts';

/** One person's word. */
export interface Vote {
  readonly approver: string;
  readonly verdict: 'approve' | 'deny';
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly comment?: string;
}

/** `approved` and `denied` wait for the callee to act on them; `used`, `expired` and `withdrawn` are over. */
export type ApprovalStatus = 'pending' | 'approved' | 'denied' | 'used' | 'expired' | 'withdrawn';

/** A task a human has to decide about, and what became of that. */
export interface Approval {
  readonly sessionId: string;
  readonly calleeId: string;
  readonly callerId: string;
  readonly status: ApprovalStatus;
  /** Digest of exactly what is approved. */
  readonly subject: string;
  readonly riskLevel: RiskLevel;
  readonly requestedAt: number;
  readonly expiresAt: number;
  /** How many people must agree. */
  readonly needed: number;
  readonly votes: readonly Vote[];
}

/** Life safety is no decision for one person. */
const TWO_MUST_AGREE: RiskLevel = 'R5';

/** From this risk on a capability that wants it is done only with a human's approval (D-20). */
export function needsApproval({ capability, riskLevel }: Terms): boolean {
  return capability.declaration.safety.requires_human_approval && riskLevel >= 'R3';
}

/** What a human would approve: just these inputs, for just this capability, at this risk and within these limits. */
export function subjectOf({ capability, riskLevel, safetyEnvelope }: Terms, task: TaskSubmitPayload): string {
  const { name, version } = capability.declaration;
  const subject = { ...task, capability: `${name}@${version}`, risk_level: riskLevel, safety_envelope: safetyEnvelope };
  return sha256(canonicalJson(subject));
}

export function newApproval(
  { sessionId, calleeId, callerId }: SessionRecord,
  terms: Terms,
  task: TaskSubmitPayload,
  { now, expiresAt }: { readonly now: number; readonly expiresAt: number },
): Approval {
  return {
    ...{ sessionId, calleeId, callerId, status: 'pending', votes: [] },
    subject: subjectOf(terms, task),
    riskLevel: terms.riskLevel,
    requestedAt: now,
    expiresAt,
    needed: terms.riskLevel >= TWO_MUST_AGREE ? 2 : 1,
  };
}

export function putApproval(approval: Approval): Write {
  return {
    put: 'approvals',
    row: {
      session_id: approval.sessionId,
      callee_id: approval.calleeId,
      caller_id: approval.callerId,
      status: approval.status,
      subject: approval.subject,
      risk_level: approval.riskLevel,
      requested_at: approval.requestedAt,
      expires_at: approval.expiresAt,
      needed: approval.needed,
      votes: JSON.stringify(approval.votes),
    },
  };
}

/** Whether it is still to be acted on. */
export function isOpen({ status }: Approval): boolean {
  return status === 'pending' || status === 'approved' || status === 'denied';
}

/** Ends an approval, unless it changed meanwhile: each is good for one decision. */
export function endApproval({ sessionId, status, subject }: Approval, to: ApprovalStatus): Write {
  return { patch: 'approvals', key: [sessionId], set: { status: to }, if: { status, subject } };
}

export function approvalOf(row: Row): Approval {
  return {
    sessionId: String(row.session_id),
    calleeId: String(row.callee_id),
    callerId: String(row.caller_id),
    // Written by putApproval and its patches alone.
    status: row.status as ApprovalStatus,
    subject: String(row.subject),
    riskLevel: row.risk_level as RiskLevel,
    requestedAt: Number(row.requested_at),
    expiresAt: Number(row.expires_at),
    needed: Number(row.needed),
    votes: JSON.parse(String(row.votes)),
  };
}
