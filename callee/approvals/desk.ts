import type { TaskSubmit, TaskSubmitPayload } from '../../schemas/types.ts';
import type { AuditDraft } from '../../session/audit/index.ts';
import { recordOf } from '../../session/record.ts';
import type { Clock } from '../../shared/clock.ts';
import { HcpError } from '../../shared/errors.ts';
import { scanAll } from '../../shared/store/scan-all.ts';
import type { Store, Write } from '../../shared/store/store.ts';
import { type Approval, approvalOf, type Vote } from './approval.ts';

/** A task that waits for a human, with all it takes to decide. */
export interface PendingApproval extends Approval {
  readonly task: TaskSubmitPayload;
}

export interface VoteOptions {
  /** Who decides: goes on record. */
  readonly approver: string;
  readonly comment?: string;
  /** The `subject` of what was looked at: refused if the question is another one by now. @default whatever is asked now */
  readonly subject?: string;
}

/** Where people decide about tasks. Works in any process that reaches the callee's store. */
export interface ApprovalDesk {
  /** The tasks that wait, the oldest first. */
  list(): Promise<readonly PendingApproval[]>;
  /** `waiting`: another person has to agree, too. Rejects with `approval_not_open`. */
  approve(sessionId: string, options: VoteOptions): Promise<'approved' | 'waiting'>;
  deny(sessionId: string, options: VoteOptions): Promise<void>;
}

export interface DeskParts {
  readonly store: Store;
  readonly calleeId: string;
  readonly clock: Clock;
  /** Durable together, with what goes on record. */
  readonly commit: (writes: readonly Write[], audit: readonly AuditDraft[]) => Promise<'committed' | 'conflict'>;
  /** Somebody has decided: whoever runs the session shall look. */
  readonly onDecided: (sessionId: string) => void | Promise<void>;
}

export function approvalDesk(parts: DeskParts): ApprovalDesk {
  const { store, calleeId, clock } = parts;
  return {
    async list() {
      const pending: PendingApproval[] = [];
      for await (const row of scanAll(store, 'approvals', 'by_status', { where: [calleeId, 'pending'] })) {
        const task = await taskOf(store, String(row.session_id));
        if (task && Number(row.expires_at) > clock.now()) pending.push({ ...approvalOf(row), task });
      }
      return pending;
    },
    async approve(sessionId, options) {
      const { votes, needed } = await vote(parts, sessionId, 'approve', options);
      return votes.length >= needed ? 'approved' : 'waiting';
    },
    async deny(sessionId, options) {
      await vote(parts, sessionId, 'deny', options);
    },
  };
}

/** Answers the approval as it is after the vote. */
async function vote(
  parts: DeskParts,
  sessionId: string,
  verdict: Vote['verdict'],
  { approver: name, comment, ...options }: VoteOptions,
): Promise<Approval> {
  // The same person with a space behind the name is the same person.
  const approver = typeof name === 'string' ? name.trim() : '';
  if (approver === '') throw new TypeError('approver must name who decides');
  const { store, calleeId, clock } = parts;
  for (let seen = options.subject; ; ) {
    const row = await store.get('approvals', [sessionId]);
    const before = row?.callee_id === calleeId ? approvalOf(row) : undefined;
    const approval = openFor(before, { approver, verdict, seen, now: clock.now() });
    const cast: Vote = { approver, verdict, at: new Date(clock.now()).toISOString(), ...(comment && { comment }) };
    const votes = [...approval.votes, cast];
    const status = verdict === 'deny' ? 'denied' : votes.length >= approval.needed ? 'approved' : 'pending';
    const after: Approval = { ...approval, votes, status };
    const { subject, riskLevel: risk_level, callerId: caller_id } = approval;
    seen = subject;
    const write: Write = {
      patch: 'approvals',
      key: [sessionId],
      set: { status, votes: JSON.stringify(votes) },
      if: { status: 'pending', subject, votes: JSON.stringify(approval.votes) },
    };
    const details = { ...cast, status, subject, risk_level, caller_id };
    // Else somebody voted, or it was asked anew, meanwhile: looked at again.
    if ((await parts.commit([write], [{ kind: 'approval', sessionId, details }])) !== 'committed') continue;
    if (status !== 'pending') await parts.onDecided(sessionId);
    return after;
  }
}

function openFor(
  approval: Approval | undefined,
  ballot: { approver: string; verdict: Vote['verdict']; seen: string | undefined; now: number },
): Approval {
  const { approver, verdict, seen, now } = ballot;
  if (approval === undefined) throw notOpen('unknown', 'No such task waits for approval');
  const { status, subject, votes } = approval;
  if (status === 'expired' || (status === 'pending' && approval.expiresAt <= now)) {
    throw notOpen('expired', 'The time to decide is over');
  }
  if (status !== 'pending') {
    throw notOpen('decided', status === 'withdrawn' ? 'The caller withdrew the task' : 'Somebody has decided already');
  }
  if (seen !== undefined && seen !== subject) throw notOpen('changed', 'What is asked is not what was looked at');
  if (verdict === 'approve' && votes.some((vote) => vote.approver === approver)) {
    throw notOpen('same_approver', `${approver} has agreed already; another person must, too`);
  }
  return approval;
}

function notOpen(reason: string, message: string): HcpError<'approval_not_open'> {
  return new HcpError('approval_not_open', message, { reason });
}

async function taskOf(store: Store, sessionId: string): Promise<TaskSubmitPayload | undefined> {
  const row = await store.get('sessions', [sessionId]);
  return row && (JSON.parse(recordOf(row).request) as TaskSubmit).payload; // parsed and checked when it came
}
