import type { EventMessage, RiskLevel, XApprovalPendingData } from '../schemas/types.ts';
import { schemaFault } from '../shared/messages/validators.ts';
import type { Row, Write } from '../shared/store/store.ts';
import type { ReceivedEvent } from './event-channel.ts';
import { isForeign } from './follow.ts';
import type { CallerSettings } from './options.ts';

/** A task about which a human decides before its callee answers. */
export interface PendingApproval {
  /** Of the `task_submit`. */
  readonly messageId: string;
  /** The session, should there be one. */
  readonly sessionId: string;
  readonly calleeId: string;
  /** Milliseconds since 1970: nobody decides after that. */
  readonly expiresAt: number;
  readonly riskLevel: RiskLevel;
}

/**
 * What became of an `x-approval-pending`. `late`: its submit was given up. `again`: it is stored already.
 * `foreign`: it is of another callee than the submit went to. `unknown`: it is for no open submit of ours.
 */
export type PendingFate =
  | { readonly stored: PendingApproval; readonly approval: Approval }
  | { readonly late: PendingApproval }
  | 'again'
  | 'foreign'
  | 'unknown';

/** The session a submit waits for, and until when. */
export interface Approval {
  readonly sessionId: string;
  readonly until: number;
}

/** The place of an `x-approval-pending`: another one would leave a hole before the first event of its session. */
const FIRST = 1;
/** Longer than this no callee keeps a submit open. */
const LONGEST_MS = 7 * 86_400_000;

/** Stores that a submit waits for a human, and the event, which waits for the session. */
export async function storePending(
  settings: CallerSettings,
  received: ReceivedEvent & { readonly message: EventMessage },
): Promise<PendingFate> {
  const { callerId, store, clock } = settings;
  const { message, body, appId, userId } = received;
  const { session_id: sessionId, payload } = message;
  if (payload.sequence !== FIRST || schemaFault('event:x-approval-pending', payload.data)) return 'unknown';
  const { in_reply_to, expires_at, assessed_risk_level } = payload.data as unknown as XApprovalPendingData; // just checked
  const messageId = in_reply_to.toLowerCase();
  const key = [callerId, messageId];
  const row = await store.get('submissions', key);
  if (row === undefined) return 'unknown';
  const calleeId = String(row.callee_id);
  if (isForeign({ calleeId, userId: undefined }, appId, userId)) return 'foreign';
  const expiresAt = Date.parse(expires_at);
  const pending = { messageId, sessionId, calleeId, expiresAt, riskLevel: assessed_risk_level };
  if (row.status === 'abandoned') return { late: pending };
  if (row.session_id === sessionId && row.status !== 'accepted') return 'again';
  if (row.status !== 'open' || row.session_id !== null) return 'unknown';

  const now = clock.now();
  const until = Math.min(expiresAt, now + LONGEST_MS);
  const parked = {
    ...{ caller_id: callerId, session_id: sessionId, sequence: FIRST },
    ...{ kind: 'waiting', parked_at: now, reason: null, body: Buffer.from(body).toString() },
  };
  const outcome = await store.commit([
    {
      patch: 'submissions',
      key,
      set: { session_id: sessionId, approval_until: until },
      if: { status: 'open', session_id: null },
    },
    // A session of ours is not to be had by naming it.
    { check: 'follows', key: [callerId, sessionId], if: 'absent' },
    { insert: 'parked', row: parked },
  ]);
  if (outcome === 'committed') return { stored: pending, approval: { sessionId, until } };
  return outcome.write === 0 ? storePending(settings, received) : 'unknown';
}

/** What is stored of it. */
export function approvalOf({ session_id: sessionId, approval_until: until }: Row): Approval | undefined {
  return typeof sessionId === 'string' && typeof until === 'number' ? { sessionId, until } : undefined;
}

/** Lets go of the event that waited for a session which will not be. */
export function forgetPending(row: Row): Write[] {
  const approval = approvalOf(row);
  return approval ? [{ delete: 'parked', key: [String(row.caller_id), approval.sessionId, FIRST] }] : [];
}
