import type { EventMessage, XReplayUnavailableData } from '../schemas/types.ts';
import type { Range } from '../session/arrival.ts';
import { schemaFault } from '../shared/messages/validators.ts';
import { canReplay, type Follow } from './follow.ts';
import type { FollowedSession } from './followed-session.ts';
import type { Follower } from './follower.ts';
import type { CallerSettings } from './options.ts';
import type { CallerTelemetry } from './telemetry.ts';

export interface GapParts {
  readonly settings: CallerSettings;
  readonly telemetry: CallerTelemetry;
  readonly askReplay: (follow: Follow, range: Range) => void;
  readonly tell: Follower['tell'];
  /** Lets through what can go on once a gap was given up. */
  readonly proceed: (session: FollowedSession) => void;
}

/** What to do about events that are missing: wait, ask for them again, go on without. */
export class Gaps {
  readonly #parts: GapParts;
  /** Oldest gap first. */
  readonly #held = new Set<FollowedSession>();

  constructor(parts: GapParts) {
    this.#parts = parts;
  }

  /** To be called whenever something came or went. */
  watch(session: FollowedSession): void {
    const { gap, isGapExpected } = session.lane;
    if (gap === undefined) {
      this.#held.delete(session);
      session.clearAlarm('gap');
    } else if (isGapExpected) this.#giveUp(session);
    else {
      this.#held.add(session);
      if (!session.isHolding(gap)) this.#hold(session, gap);
      this.#keepBound();
    }
  }

  /** What waits behind gaps is bounded in total: the oldest gap is given up first. */
  #keepBound(): void {
    const { maxWaiting } = this.#parts.settings;
    let waiting = 0;
    for (const { lane } of this.#held) waiting += lane.waiting;
    const [oldest] = this.#held;
    if (waiting > maxWaiting && oldest !== undefined) this.#giveUp(oldest);
  }

  /** Gives the missing events time to come, and asks for them where that is possible. */
  #hold(session: FollowedSession, gap: Range): void {
    const { gapHoldMs, replayTimeoutMs } = this.#parts.settings;
    const isCurable = canReplay(session.follow);
    if (isCurable) this.#parts.askReplay(session.follow, gap);
    session.hold(gap, isCurable ? replayTimeoutMs : gapHoldMs, () => this.#giveUp(session));
  }

  /** What the callee no longer holds will not come; what was only too much at once is asked for again. */
  answered(session: FollowedSession, { payload }: EventMessage): void {
    if (schemaFault('event:x-replay-unavailable', payload.data)) return;
    const { from_sequence, to_sequence, reason } = payload.data as unknown as XReplayUnavailableData;
    const { gap } = session.lane;
    if (gap === undefined || to_sequence < gap[0] || from_sequence > gap[1]) return;
    if (reason === 'limit') this.#parts.askReplay(session.follow, [from_sequence, to_sequence]);
    if (reason === 'not_held') this.#giveUp(session);
  }

  #giveUp(session: FollowedSession): void {
    this.#held.delete(session);
    session.clearAlarm('gap');
    const range = session.lane.giveUp();
    if (range === undefined) return;
    const { sessionId } = session.follow;
    this.#parts.settings.logger.warn(
      { session_id: sessionId, from: range[0], to: range[1] },
      'Events are missing: going on without them',
    );
    this.#parts.telemetry.gap();
    this.#parts.tell('onGap', { sessionId, range });
    this.#parts.proceed(session);
  }
}
