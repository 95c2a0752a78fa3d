import type { Range } from '../session/arrival.ts';
import { parseDuration } from '../shared/durations.ts';
import { HcpError } from '../shared/errors.ts';
import { canReplay, type Follow, followOf, type ResultMessage } from './follow.ts';
import type { FollowedSession } from './followed-session.ts';
import type { Follower } from './follower.ts';
import type { CallerSettings } from './options.ts';
import { missingTail } from './outcome.ts';
import type { Patience } from './patience.ts';

export interface EndingParts {
  readonly settings: CallerSettings;
  readonly askReplay: (follow: Follow, range: Range) => void;
  readonly patience: Patience;
  readonly tell: Follower['tell'];
}

/** Sees sessions to their end: what is known of it, and what should have come by now. */
export class Endings {
  readonly #parts: EndingParts;

  constructor(parts: EndingParts) {
    this.#parts = parts;
  }

  /** Resolves when the result is stored. The first one counts (HCP-220). */
  async receiveResult(session: FollowedSession, message: ResultMessage): Promise<void> {
    const { patience, settings } = this.#parts;
    const { store, logger } = settings;
    const { callerId, sessionId } = session.follow;
    const key = [callerId, sessionId];
    const result = await patience.with(async (): Promise<ResultMessage | undefined> => {
      if (session.follow.result) return session.follow.result;
      const set = { result: JSON.stringify(message) };
      const outcome = await store.commit([{ patch: 'follows', key, set, if: { result: null } }]);
      if (outcome === 'committed') return message;
      const row = await store.get('follows', key);
      return row && followOf(row).result;
    });
    if (result === undefined) return; // forgotten meanwhile
    if (result.message_id !== message.message_id) {
      logger.error({ session_id: sessionId, message_id: message.message_id }, 'A second result: ignored');
    }
    session.lane.follow = { ...session.follow, result };
    this.look(session);
  }

  /** Rings when a session should have ended. */
  watch(session: FollowedSession): void {
    const { clock, graceMs } = this.#parts.settings;
    const { accepted, startedAt, endedAt } = session.follow;
    const maxDurationMs = parseDuration(accepted.payload.constraints?.max_duration ?? '');
    if (maxDurationMs === undefined || endedAt !== undefined) return;
    const leftMs = startedAt + maxDurationMs + graceMs - clock.now();
    session.setAlarm('stall', Math.max(0, leftMs), () => this.#stalled(session));
  }

  /** To be called whenever something came. */
  look(session: FollowedSession): void {
    session.settle();
    session.changed();
    const { told, isQuiet } = session;
    const { finalState, result } = told;
    const isOver = finalState === 'ABORTED' || (finalState !== undefined && result !== undefined);
    if (told.endedAt !== undefined) this.#settleAnyway(session);
    else if (!isQuiet)
      return; // it is looked at again
    else if (isOver && missingTail(told) === undefined) void this.#end(session);
    else if ((finalState ?? result) !== undefined && !session.hasAlarm('grace')) this.#grace(session);
  }

  /** Half of the end is there; the other half has some time to come. */
  #grace(session: FollowedSession): void {
    const missing = missingTail(session.told);
    if (missing && canReplay(session.follow)) this.#parts.askReplay(session.follow, missing);
    session.setAlarm('grace', this.#parts.settings.graceMs, () => {
      if (!session.isQuiet) return; // something came
      const { sessionId } = session.follow;
      const missingNow = session.hasSettled ? undefined : missingTail(session.told);
      if (missingNow) this.#parts.tell('onGap', { sessionId, range: missingNow });
      this.#settleAnyway(session);
      void this.#end(session);
    });
  }

  /** Nothing more is waited for. */
  #settleAnyway(session: FollowedSession): void {
    if (session.hasSettled || session.settle({ anyway: true })) return;
    const { sessionId, finalState, endedAt } = session.told;
    const error = new HcpError('result_missing', `Session ${sessionId} was closed (${finalState}) without a result`);
    session.fail(error);
    if (endedAt === undefined) this.#parts.tell('onTrouble', error, sessionId);
  }

  /** Still followed: it may only be late (HCP-229). */
  #stalled(session: FollowedSession): void {
    if (session.hasSettled) return;
    const { sessionId } = session.follow;
    const error = new HcpError(
      'session_stalled',
      `Session ${sessionId} should have ended by now, and nothing is heard of it`,
    );
    session.stall(error);
    this.#parts.tell('onTrouble', error, sessionId);
  }

  async #end(session: FollowedSession): Promise<void> {
    const { callerId, sessionId } = session.follow;
    const endedAt = this.#parts.settings.clock.now();
    session.lane.follow = { ...session.follow, endedAt };
    session.clearAlarms();
    session.changed();
    try {
      await this.#parts.settings.store.commit([
        { patch: 'follows', key: [callerId, sessionId], set: { ended_at: endedAt, open: null } },
      ]);
    } catch (error) {
      // It is ended again when it is met next.
      this.#parts.settings.logger.warn(
        { err: error, session_id: sessionId },
        'The end of a session could not be stored',
      );
    }
  }
}
