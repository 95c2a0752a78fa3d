import type { Abort } from '../schemas/types.ts';
import { react } from '../session/lifecycle.ts';
import { recordOf, type SessionRecord } from '../session/record.ts';
import { isHcpError } from '../shared/errors.ts';
import type { Write } from '../shared/store/store.ts';
import type { Admissions } from './admissions.ts';
import { isAuthorised, type SessionCommand } from './authorisation.ts';
import type { Host } from './host.ts';
import type { LiveSession } from './session.ts';
import type { Errand, StoredCommands } from './stored-commands.ts';

/** An abort and who sent it. */
export type AbortCommand = SessionCommand & { readonly message: Abort };

export interface AbortParts {
  readonly host: Host;
  readonly live: ReadonlyMap<string, LiveSession>;
  readonly stored: StoredCommands;
  readonly admissions: Admissions;
}

/** Obeys aborts: those of the session's own caller, once, here or in the instance that runs the session. */
export class Aborts {
  readonly #parts: AbortParts;

  constructor(parts: AbortParts) {
    this.#parts = parts;
  }

  /** Resolves when its effect, or its way to the owner, is durable. Wrong ones meet silence, like unknown sessions (D-10). */
  async take(command: AbortCommand): Promise<void> {
    const { host, live } = this.#parts;
    const { session_id: sessionId, message_id } = command.message;
    const session = live.get(sessionId);
    if (session) return this.#obey(session, command);
    const row = await host.store.get('sessions', [sessionId]);
    const about = { session_id: sessionId, message_id, type: 'abort' };
    if (row === undefined || row.callee_id !== host.settings.calleeId) {
      return host.logger.warn(about, 'Abort of a session nobody knows: ignored');
    }
    const record = recordOf(row);
    if (!(await isAuthorised(host, record, command))) return;
    if (!canStop(record)) {
      return host.logger.info({ ...about, state: record.state }, 'Abort has nothing to stop: ignored');
    }
    await this.#forward(record, command);
  }

  /** Obeys what another instance stored, if the session runs here, and forgets what is obsolete. */
  async takeStored({ sessionId, task: message, userId, appId }: Errand<Abort>, forget: Write): Promise<void> {
    const { host, live } = this.#parts;
    const session = live.get(sessionId);
    if (session) return this.#obey(session, { message, userId, appId }, [forget]);
    const stored = await host.store.get('sessions', [sessionId]);
    if (stored === undefined || !canStop(recordOf(stored))) await host.store.commit([forget]);
  }

  async #obey(session: LiveSession, command: AbortCommand, writes: readonly Write[] = []): Promise<void> {
    const { host, admissions } = this.#parts;
    const { session_id, message_id } = command.message;
    const about = { session_id, message_id, type: 'abort', state: session.state };
    try {
      if (await isAuthorised(host, session.record, command)) {
        const { reason } = command.message.payload;
        if (await admissions.withdraw(session, writes)) return host.logger.info({ ...about, reason }, 'Task withdrawn');
        if (await session.abort(reason, writes))
          return host.logger.info({ ...about, reason }, 'Session aborted by its caller');
        host.logger.info(about, 'Abort has nothing to stop: ignored');
      }
      if (writes.length > 0) await host.store.commit(writes);
    } catch (error) {
      if (!isHcpError(error, 'session_taken_over')) throw error;
      // Whoever has it now must hear of it.
      const row = await host.store.get('sessions', [session_id]);
      if (row) await this.#forward(recordOf(row), command);
    }
  }

  async #forward(record: SessionRecord, { message, userId, appId }: AbortCommand): Promise<void> {
    const { session_id: sessionId, message_id: messageId } = message;
    await this.#parts.stored.put(record, { sessionId, messageId, task: message, userId, appId });
  }
}

/** Whether there is work to stop, or a task that its caller may still withdraw. */
function canStop({ state, extensions }: SessionRecord): boolean {
  return typeof react(state, 'abort') === 'object' || (state === 'PENDING' && extensions.includes('approval/1'));
}
