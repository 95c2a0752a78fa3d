import type { XPause, XResume } from '../schemas/types.ts';
import { isTerminal } from '../session/lifecycle.ts';
import { recordOf, type SessionRecord } from '../session/record.ts';
import { parseDuration } from '../shared/durations.ts';
import { isHcpError } from '../shared/errors.ts';
import type { Write } from '../shared/store/store.ts';
import { Turns } from '../shared/turns.ts';
import { isAuthorised, type SessionCommand } from './authorisation.ts';
import type { Host } from './host.ts';
import type { LiveSession } from './session.ts';
import type { Errand, StoredCommands } from './stored-commands.ts';

/** A caller wants its session to rest, or to go on. */
export type PauseCommand = SessionCommand & { readonly message: XPause | XResume };

export interface PauseParts {
  readonly host: Host;
  readonly live: ReadonlyMap<string, LiveSession>;
  readonly stored: StoredCommands;
}

/** How long work may go on to its next safe point, where the caller does not say. */
const DRAIN_MS = 60_000;

/** Obeys `x-pause` and `x-resume` where `pause/1` is in force, here or in the instance that runs the session (P6). */
export class Pauses {
  readonly #parts: PauseParts;
  /** One at a time for each session: a pause must not overtake the resume before it. */
  readonly #turns = new Turns<string>();

  constructor(parts: PauseParts) {
    this.#parts = parts;
  }

  /** Resolves when its effect, or its way to the owner, is durable. Wrong ones meet silence, like unknown sessions. */
  take(command: PauseCommand): Promise<void> {
    return this.#turns.take(command.message.session_id, () => this.#take(command));
  }

  /** Obeys what another instance stored, if the session runs here, and forgets what is obsolete. */
  takeStored(errand: Errand<XPause | XResume>, forget: Write): Promise<void> {
    return this.#turns.take(errand.sessionId, () => this.#takeStored(errand, forget));
  }

  async #take(command: PauseCommand): Promise<void> {
    const { host, live } = this.#parts;
    const { session_id: sessionId, message_id, type } = command.message;
    const about = { session_id: sessionId, message_id, type };
    const session = live.get(sessionId);
    const record = session?.record ?? (await this.#stored(sessionId));
    if (record === undefined) return host.logger.warn(about, 'Command for a session nobody knows: ignored');
    if (!(await isAuthorised(host, record, command))) return;
    if (!record.extensions.includes('pause/1')) {
      return host.logger.info({ ...about, state: record.state }, 'The extension is not in force: ignored');
    }
    if (isTerminal(record.state)) {
      return host.logger.info({ ...about, state: record.state }, 'The session is over: ignored');
    }
    const isDone = session !== undefined && (await this.#obey(session, command.message));
    if (!isDone) await this.#forward(sessionId, command);
  }

  async #takeStored({ sessionId, messageId, task }: Errand<XPause | XResume>, forget: Write): Promise<void> {
    const { host, live } = this.#parts;
    // Whoever looked at the same time may have been faster.
    if ((await host.store.get('commands', [sessionId, messageId])) === undefined) return;
    const session = live.get(sessionId);
    if (session) return void (await this.#obey(session, task, [forget]));
    const record = await this.#stored(sessionId);
    if (record === undefined || isTerminal(record.state)) await host.store.commit([forget]);
  }

  /** Answers whether it was done, or that there is nothing left to do; not when another instance has the session now. */
  async #obey(
    session: LiveSession,
    { type, payload }: XPause | XResume,
    writes: readonly Write[] = [],
  ): Promise<boolean> {
    try {
      if (type === 'x-resume') await session.rest.resumeForCaller(writes);
      else {
        const drainMs = parseDuration(payload.drain_timeout ?? '') ?? DRAIN_MS;
        await session.rest.pauseForCaller(payload.mode ?? 'drain', drainMs, writes);
      }
      return true;
    } catch (error) {
      if (isHcpError(error, 'session_taken_over') || isHcpError(error, 'session_handed_over')) return false;
      // It ended, or may not go on, meanwhile: that has been told in its own way.
      if (!isHcpError(error) || error.retryable) throw error;
      this.#parts.host.logger.info({ err: error, session_id: session.record.sessionId, type }, 'Not obeyed');
      if (writes.length > 0) await this.#parts.host.store.commit(writes);
      return true;
    }
  }

  async #stored(sessionId: string): Promise<SessionRecord | undefined> {
    const { host } = this.#parts;
    const row = await host.store.get('sessions', [sessionId]);
    return row === undefined || row.callee_id !== host.settings.calleeId ? undefined : recordOf(row);
  }

  async #forward(sessionId: string, { message, userId, appId }: PauseCommand): Promise<void> {
    const record = await this.#stored(sessionId);
    if (record === undefined || isTerminal(record.state)) return;
    await this.#parts.stored.put(record, { sessionId, messageId: message.message_id, task: message, userId, appId });
  }
}
