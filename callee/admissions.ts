import { isHcpError } from '../shared/errors.ts';
import { scanAll } from '../shared/store/scan-all.ts';
import type { Write } from '../shared/store/store.ts';
import { Turns } from '../shared/turns.ts';
import {
  type Approval,
  approvalOf,
  endApproval,
  isOpen,
  needsApproval,
  newApproval,
  subjectOf,
} from './approvals/approval.ts';
import { FULL } from './gate/checks.ts';
import { type GateParts, judge, type Rejection, rejectionOf, type Terms, UNJUDGED } from './gate/gate.ts';
import type { Host } from './host.ts';
import { isUnsayable } from './sayings.ts';
import type { LiveSession } from './session.ts';
import { grant } from './session-token.ts';

export interface AdmissionParts {
  readonly host: Host;
  readonly gate: GateParts;
  readonly live: ReadonlyMap<string, LiveSession>;
}

/**
 * Brings stored submits to their decision: through the gate and, where that is asked for, a human's hands. Everything is
 * in the store, so whoever has the session next goes on where this was left.
 */
export class Admissions {
  readonly #parts: AdmissionParts;
  /** One judgement of a session at a time. */
  readonly #turns = new Turns<LiveSession>();
  readonly #expiries = new Map<LiveSession, unknown>();
  /** Those that asked a human, or took a place, in this life. */
  readonly #engaged = new WeakSet<LiveSession>();

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  /** Judges a session, for the first time, after a restart, or because a human has decided. */
  judge(session: LiveSession): Promise<void> {
    return this.#turns.take(session, () => this.#judge(session));
  }

  /** The caller does not want it any more. Answers whether it was still to be decided, and told so (P3). */
  async withdraw(session: LiveSession, writes: readonly Write[]): Promise<boolean> {
    const isWaiting = () => session.state === 'PENDING' && session.record.extensions.includes('approval/1');
    let isWithdrawn = false;
    // While the gate is at work there is nothing to withdraw, and nothing to wait for.
    if (!isWaiting()) return false;
    await this.#turns.take(session, async () => {
      if (!isWaiting()) return;
      this.#forgetExpiry(session);
      await this.#reject(session, WITHDRAWN, await this.#approval(session), writes);
      isWithdrawn = true;
    });
    return isWithdrawn;
  }

  /** Looks for decisions about sessions that wait here. */
  async look(): Promise<void> {
    const { host, live } = this.#parts;
    for (const status of ['approved', 'denied']) {
      const where = [host.settings.calleeId, status];
      for await (const { session_id } of scanAll(host.store, 'approvals', 'by_status', { where })) {
        const session = live.get(String(session_id));
        if (session?.state === 'PENDING') await this.judge(session);
      }
    }
  }

  close(): void {
    for (const timer of this.#expiries.values()) this.#parts.host.clock.clearTimeout(timer);
    this.#expiries.clear();
  }

  async #judge(session: LiveSession): Promise<void> {
    const { host, gate } = this.#parts;
    if (session.state !== 'PENDING') return; // decided meanwhile
    this.#forgetExpiry(session);
    const { callerId, userId, sessionId, messageId: message_id } = session.record;
    try {
      const approval = await this.#approval(session);
      // A no, or nobody's yes in time, is the answer whatever the gate would say by now.
      const refusal = approval && refusalBy(approval, host.clock.now());
      if (refusal) return await this.#reject(session, refusal, approval);
      const judgement = await judge(gate, { callerId, userId, task: session.task }, sessionId);
      const work =
        'rejection' in judgement
          ? this.#reject(session, judgement.rejection, approval)
          : this.#admit(session, judgement.terms, approval);
      await work.catch(async (error: unknown) => {
        if (!isUnsayable(error)) throw error;
        host.logger.error({ err: error, session_id: sessionId, message_id }, 'The policy said what no message can');
        return this.#reject(session, UNJUDGED, await this.#approval(session));
      });
    } catch (error) {
      if (!isHcpError(error, 'session_taken_over')) throw error;
    }
  }

  async #admit(session: LiveSession, terms: Terms, approval: Approval | undefined): Promise<void> {
    if (!needsApproval(terms)) {
      const isClear = approval === undefined || (await this.#drop(session, approval));
      return isClear ? this.#accept(session, terms) : undefined;
    }
    // Approved is what was asked: other inputs, another version, another risk are another question.
    if (approval?.subject !== subjectOf(terms, session.task)) return this.#ask(session, terms, approval);
    if (approval.status === 'approved') return this.#accept(session, terms, approval);
    this.#expireAt(session, approval.expiresAt);
  }

  /** `before`: the question that this one replaces, in the time that is left for it. */
  async #ask(session: LiveSession, terms: Terms, before: Approval | undefined): Promise<void> {
    const { clock, settings } = this.#parts.host;
    const now = clock.now();
    const expiresAt = before?.expiresAt ?? now + settings.approvalTimeoutMs;
    this.#engaged.add(session);
    await session.awaitApproval(terms, newApproval(session.record, terms, session.task, { now, expiresAt }));
    this.#expireAt(session, expiresAt);
  }

  /** Nobody has to decide any more. Not when somebody did meanwhile: that is looked at by itself. */
  async #drop({ record: { sessionId, epoch } }: LiveSession, approval: Approval): Promise<boolean> {
    const isOurs: Write = { check: 'sessions', key: [sessionId], if: { epoch, state: 'PENDING' } };
    return (await this.#parts.host.store.commit([isOurs, endApproval(approval, 'expired')])) === 'committed';
  }

  async #accept(session: LiveSession, terms: Terms, approval?: Approval): Promise<void> {
    const { host, gate } = this.#parts;
    const slot = await gate.slots.take(terms.capability.declaration, session.record.sessionId);
    if (slot === 'full') return this.#reject(session, rejectionOf(FULL), approval);
    if (slot !== 'unlimited') this.#engaged.add(session);
    const given = await grant(host.keys, session.record, terms, host.settings);
    await session.accept({ terms, grant: given, slot: slot === 'unlimited' ? undefined : slot, approval });
    session.start(terms.capability);
  }

  /**
   * With it ends what it asked of a human, or took, before it came to this. `approval`: as it was when that was decided,
   * so that a vote which came in between is not lost.
   */
  async #reject(
    session: LiveSession,
    rejection: Rejection,
    approval: Approval | undefined,
    writes: readonly Write[] = [],
  ): Promise<void> {
    if (this.#isFresh(session)) return session.reject(rejection, writes);
    const places = await this.#parts.gate.slots.release(session.record.sessionId);
    const ended = rejection === WITHDRAWN ? 'withdrawn' : approval?.status === 'denied' ? 'used' : 'expired';
    const question = approval && isOpen(approval) ? [endApproval(approval, ended)] : [];
    await session.reject(rejection, [...writes, ...places, ...question]);
  }

  /** Whether there can be nothing of it in the store but itself. */
  #isFresh(session: LiveSession): boolean {
    return !session.isRecovered && !this.#engaged.has(session);
  }

  async #approval(session: LiveSession): Promise<Approval | undefined> {
    if (this.#isFresh(session)) return undefined;
    const row = await this.#parts.host.store.get('approvals', [session.record.sessionId]);
    return row && approvalOf(row);
  }

  #expireAt(session: LiveSession, at: number): void {
    const { host, gate, live } = this.#parts;
    if (gate.closing.aborted) return; // whoever has the session next waits
    const wait = () => {
      const isHere = live.get(session.record.sessionId) === session;
      if (!isHere) return this.#forgetExpiry(session);
      this.judge(session).catch((error: unknown) => {
        host.logger.error({ err: error, session_id: session.record.sessionId }, 'An approval could not be ended');
      });
    };
    this.#expiries.set(session, host.clock.setTimeout(wait, Math.max(0, at - host.clock.now())));
  }

  #forgetExpiry(session: LiveSession): void {
    this.#parts.host.clock.clearTimeout(this.#expiries.get(session));
    this.#expiries.delete(session);
  }
}

const EXPIRED: Rejection = {
  reason_code: 'approval_timeout',
  reason_message: 'Nobody decided about the task in time',
  suggestion: 'Submit it again when somebody can decide',
};

const WITHDRAWN: Rejection = {
  reason_code: 'withdrawn',
  reason_message: 'The caller withdrew the task before it was decided',
};

/** What was decided against it; `undefined` while it may still be, or is, approved. */
function refusalBy(approval: Approval, now: number): Rejection | undefined {
  if (approval.status === 'denied') return denied(approval);
  const isAlive = approval.status === 'approved' || (approval.status === 'pending' && approval.expiresAt > now);
  return isAlive ? undefined : EXPIRED;
}

const LONGEST_COMMENT = 2000;

function denied({ votes }: Approval): Rejection {
  // Cut short where it is long: the answer must fit into a message.
  const comment = votes.at(-1)?.comment?.slice(0, LONGEST_COMMENT).toWellFormed();
  return {
    reason_code: 'approval_denied',
    reason_message: comment === undefined ? 'The task was denied' : `The task was denied: ${comment}`,
    suggestion: 'Ask the operator of this callee what would be approved',
  };
}
