import { createHash, timingSafeEqual } from 'node:crypto';
import type { Abort } from '../schemas/types.ts';
import { react } from '../session/lifecycle.ts';
import { recordOf, type SessionRecord } from '../session/record.ts';
import { isHcpError } from '../shared/errors.ts';
import type { Row, Write } from '../shared/store/store.ts';
import type { ReceivedCommand } from './command-channel.ts';
import type { Host } from './host.ts';
import type { LiveSession } from './session.ts';

/** An abort and who sent it. */
export type AbortCommand = Pick<ReceivedCommand, 'userId' | 'appId'> & { readonly message: Abort };

export interface AbortParts {
  readonly host: Host;
  readonly live: ReadonlyMap<string, LiveSession>;
  /** Tells another instance to look into the store. */
  readonly ring: (instanceId: string) => void;
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
    if (!this.#isAuthorised(record, command)) return;
    if (typeof react(record.state, 'abort') !== 'object') {
      return host.logger.info({ ...about, state: record.state }, 'Abort has nothing to stop: ignored');
    }
    await this.#forward(record, command);
  }

  /** Obeys what other instances stored for sessions that run here, and forgets what is obsolete. */
  async takeStored(): Promise<void> {
    const { host } = this.#parts;
    const rows = await host.store.scan('commands', 'by_callee', { where: [host.settings.calleeId] });
    for (const row of rows) await this.#takeStored(row);
  }

  async #takeStored(row: Row): Promise<void> {
    const { host, live } = this.#parts;
    const sessionId = String(row.session_id);
    const forget: Write = { delete: 'commands', key: [sessionId, String(row.message_id)] };
    const session = live.get(sessionId);
    if (session) {
      const message = JSON.parse(String(row.body)) as Abort; // checked when it came
      const [userId, appId] = [row.user_id, row.app_id].map((id) => (typeof id === 'string' ? id : undefined));
      await this.#obey(session, { message, userId, appId }, [forget]);
      return;
    }
    const stored = await host.store.get('sessions', [sessionId]);
    const isOpen = stored !== undefined && typeof react(recordOf(stored).state, 'abort') === 'object';
    if (!isOpen) await host.store.commit([forget]);
  }

  async #obey(session: LiveSession, command: AbortCommand, writes: readonly Write[] = []): Promise<void> {
    const { host } = this.#parts;
    const { session_id, message_id } = command.message;
    const about = { session_id, message_id, type: 'abort', state: session.state };
    try {
      if (this.#isAuthorised(session.record, command)) {
        const { reason } = command.message.payload;
        if (await session.abort(writes)) return host.logger.info({ ...about, reason }, 'Session aborted by its caller');
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
    const { host, ring } = this.#parts;
    const { sessionId, calleeId, owner } = record;
    const row = {
      session_id: sessionId,
      message_id: message.message_id,
      callee_id: calleeId,
      received_at: host.clock.now(),
      body: JSON.stringify(message),
      user_id: userId ?? null,
      app_id: appId ?? null,
    };
    await host.store.commit([{ put: 'commands', row }]);
    if (owner !== '') ring(owner);
  }

  /** Only the caller of the session, by what the broker and the token say of the sender (D-16). */
  #isAuthorised(record: SessionRecord, { message, userId, appId }: AbortCommand): boolean {
    const why = refusal(record, { message, userId, appId }, this.#parts.host.settings.abortToken);
    if (why === undefined) return true;
    const { session_id, message_id } = message;
    const { callerId: caller_id, state } = record;
    this.#parts.host.logger.warn(
      {
        audit: 'abort_refused',
        type: 'abort',
        session_id,
        message_id,
        caller_id,
        state,
        app_id: appId,
        user_id: userId,
        why,
      },
      'Abort refused',
    );
    return false;
  }
}

function refusal(
  record: SessionRecord,
  { message, userId, appId }: AbortCommand,
  abortToken: 'optional' | 'required',
): string | undefined {
  if (appId !== undefined && appId !== record.callerId) return 'another caller sent it';
  if (record.userId !== undefined && userId !== record.userId) return 'another login sent it';
  const { session_token: token } = message.payload;
  if (token === undefined) return abortToken === 'required' ? 'it has no token' : undefined;
  return isSame(token, record.token ?? '') ? undefined : 'its token is wrong';
}

/** In constant time: digests have equal lengths. */
function isSame(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}
