import type { TaskAccepted } from '../schemas/types.ts';
import type { Range } from '../session/arrival.ts';
import { formatDuration } from '../shared/durations.ts';
import { HcpError } from '../shared/errors.ts';
import { buildMessage } from '../shared/messages/build.ts';
import type { ExtensionCommands, Messages } from '../shared/messages/message.ts';
import { choiceOption, integerOption, LONGEST_TIMER_MS } from '../shared/option-checks.ts';
import type { EventChannel } from './event-channel.ts';
import { type Follow, isInForce } from './follow.ts';
import type { FollowedSession, SessionStatus } from './followed-session.ts';
import type { CallerSettings } from './options.ts';

/** What an abort is for. Before the acceptance no token is known. */
export type AbortTarget = Pick<Follow, 'sessionId' | 'calleeId'> & { readonly accepted?: TaskAccepted };

/** How a session is paused. */
export interface PauseOptions {
  /** `drain`: at the next safe point of the work. `immediate`: now. @default 'drain' */
  readonly mode?: 'drain' | 'immediate';
  /** How long the work may take to get to a safe point. @default the callee's own */
  readonly drainTimeoutMs?: number;
  /** For the callee's logs. */
  readonly reason?: string;
  /** Ends the waiting, not the pause. */
  readonly signal?: AbortSignal;
}

type Commands = Pick<Messages, 'abort'> & ExtensionCommands;

const NOTHING = () => {};

/** What a caller says to a callee about a session. */
export class SessionCommands {
  readonly #settings: CallerSettings;
  readonly #channel: EventChannel;

  constructor(settings: CallerSettings, channel: EventChannel) {
    this.#settings = settings;
    this.#channel = channel;
  }

  /** Resolves when it is sent. */
  abort(target: AbortTarget, reason: string | undefined): Promise<void> {
    return this.#send('abort', target, { ...(reason !== undefined && { reason }) });
  }

  /** Only where it was agreed; whether anything comes of it shows by what arrives. */
  replay(follow: Follow, [from, to]: Range): void {
    this.#send('x-replay', follow, { from_sequence: from, to_sequence: to }).catch((error: unknown) => {
      const about = { err: error, session_id: follow.sessionId };
      this.#settings.logger.warn(about, 'A replay could not be asked for');
    });
  }

  async status(session: FollowedSession, signal: AbortSignal | undefined): Promise<SessionStatus> {
    if (!isInForce('status/1', session.follow)) throw new TypeError('This callee does not speak status/1');
    signal?.throwIfAborted();
    const told = session.nextStatus();
    await this.#send('x-status', session.follow, {});
    if (signal === undefined) return told;
    const stopped = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    return Promise.race([told, stopped]);
  }

  async pause(session: FollowedSession, options: PauseOptions): Promise<void> {
    const { mode, drainTimeoutMs, reason, signal } = options;
    const limits = { fallback: 0, min: 1, max: LONGEST_TIMER_MS };
    const drainMs = integerOption(drainTimeoutMs, 'drainTimeoutMs', limits);
    const payload = {
      mode: choiceOption(mode, 'mode', ['drain', 'immediate']),
      ...(drainMs > 0 && { drain_timeout: formatDuration(drainMs) }),
      ...(reason !== undefined && { reason }),
    };
    await this.#move(session, 'PAUSED', signal, () => this.#send('x-pause', session.follow, payload));
  }

  async resume(session: FollowedSession, reason: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    const payload = { ...(reason !== undefined && { reason }) };
    await this.#move(session, 'RUNNING', signal, () => this.#send('x-resume', session.follow, payload));
  }

  /** Asks, and waits until the session is there; its end comes first where it cannot be any more. */
  async #move(
    session: FollowedSession,
    state: 'PAUSED' | 'RUNNING',
    signal: AbortSignal | undefined,
    ask: () => Promise<void>,
  ): Promise<void> {
    const { follow, hasSettled } = session;
    if (!isInForce('pause/1', follow)) throw new TypeError('pause/1 is not in force: ask for it with the task');
    signal?.throwIfAborted();
    const done = new AbortController();
    const reached = session.reaches(state, signal ? AbortSignal.any([signal, done.signal]) : done.signal);
    const ended = session.ending.then(() => {
      throw new HcpError('session_closed', `Session ${follow.sessionId} has ended`);
    });
    for (const promise of [reached, ended]) promise.catch(NOTHING); // one of them is not waited for
    try {
      if (!hasSettled) await ask();
      await Promise.race(hasSettled ? [ended] : [reached, ended]);
    } finally {
      done.abort();
    }
  }

  async #send<Type extends keyof Commands>(
    type: Type,
    { sessionId, calleeId, accepted }: AbortTarget,
    said: Omit<Commands[Type]['payload'], 'session_token'>,
  ): Promise<void> {
    const { callerId, clock, limits } = this.#settings;
    const payload = { ...said, ...(accepted && { session_token: accepted.payload.session_token }) };
    const draft = { type, sessionId, senderId: callerId, payload };
    if ((await this.#channel.publish(calleeId, buildMessage(draft, { clock, limits }))) === 'unroutable') {
      throw new HcpError(
        'callee_unreachable',
        `There is no callee ${calleeId} for the ${type} of session ${sessionId}`,
      );
    }
  }
}
