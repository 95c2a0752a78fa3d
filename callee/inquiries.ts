import type { XReplay, XStatus } from '../schemas/types.ts';
import { isTerminal, type SessionState } from '../session/lifecycle.ts';
import { readTail } from '../session/log.ts';
import { recordOf, type SessionRecord } from '../session/record.ts';
import { isHcpError } from '../shared/errors.ts';
import { buildMessage } from '../shared/messages/build.ts';
import type { Write } from '../shared/store/store.ts';
import { isAuthorised, type SessionCommand } from './authorisation.ts';
import type { CommandChannel } from './command-channel.ts';
import type { Host } from './host.ts';
import { replay } from './replay.ts';
import type { LiveSession } from './session.ts';
import type { ExtensionSaying } from './session-writer.ts';
import type { Answer, Errand, StoredCommands } from './stored-commands.ts';

/** A question of a caller about its session. */
export type Inquiry = SessionCommand & { readonly message: XReplay | XStatus };

export interface InquiryParts {
  readonly host: Host;
  readonly live: ReadonlyMap<string, LiveSession>;
  readonly channel: CommandChannel;
  readonly stored: StoredCommands;
}

const EXTENSION_OF = { 'x-replay': 'replay/1', 'x-status': 'status/1' } as const;

/** Outside the stream: no event has it, and every caller that has seen one skips it (HCP-207). */
const NO_SEQUENCE = 0;

/**
 * Answers what callers ask about their own sessions, where the extension is in force; anything else meets silence. What
 * is told in an event of its own has the next sequence while the session lasts, so only its owner can say it. After
 * `session_closed` the stream stays as it is (HCP-110, HCP-115): the answer stands outside of it, and nothing is stored.
 */
export class Inquiries {
  readonly #parts: InquiryParts;

  constructor(parts: InquiryParts) {
    this.#parts = parts;
  }

  /** Resolves when it is answered, or when that is in the hands of the instance that runs the session. */
  async take(inquiry: Inquiry): Promise<void> {
    const { host, live } = this.#parts;
    const { message, userId, appId } = inquiry;
    const { type, session_id: sessionId, message_id: messageId } = message;
    const about = { session_id: sessionId, message_id: messageId, type };
    const record = live.get(sessionId)?.record ?? (await this.#stored(sessionId));
    if (record === undefined) return host.logger.warn(about, 'Asked about a session nobody knows: ignored');
    if (!(await isAuthorised(host, record, inquiry))) return;
    if (!record.extensions.includes(EXTENSION_OF[type])) {
      return host.logger.info({ ...about, state: record.state }, 'The extension is not in force: ignored');
    }
    const task = await this.#answerTo(record, message);
    if (task === undefined) return;
    const owned = await this.#say(sessionId, task);
    if (owned !== undefined) await this.#parts.stored.put(owned, { sessionId, messageId, task, userId, appId });
  }

  /** Says what another instance was asked, if it can be said here. What cannot be said now stays stored. */
  async takeStored({ sessionId, messageId, task }: Errand<Answer>, forget: Write): Promise<void> {
    try {
      await this.#say(sessionId, task, [forget]);
    } catch (error) {
      const about = { err: error, session_id: sessionId, message_id: messageId, type: task.type };
      this.#parts.host.logger.warn(about, 'A stored question could not be answered: tried again later');
    }
  }

  async #stored(sessionId: string): Promise<SessionRecord | undefined> {
    const { host } = this.#parts;
    const row = await host.store.get('sessions', [sessionId]);
    return row === undefined || row.callee_id !== host.settings.calleeId ? undefined : recordOf(row);
  }

  /** What is left to say, once the log has been published again as far as it goes. */
  async #answerTo(record: SessionRecord, message: XReplay | XStatus): Promise<Answer | undefined> {
    if (message.type === 'x-status') return { type: 'x-status' };
    const unavailable = await replay(this.#parts, record, message.payload);
    return unavailable.length > 0 ? { type: 'x-replay', unavailable } : undefined;
  }

  /** Answers with the session when only another instance, or this one a little later, can say it. */
  async #say(sessionId: string, answer: Answer, writes: readonly Write[] = []): Promise<SessionRecord | undefined> {
    const { host, live } = this.#parts;
    const session = live.get(sessionId);
    if (session && (await saidInStream(session, answer, writes))) return undefined;
    // As stored: an end that is not durable yet has not happened.
    const record = await this.#stored(sessionId);
    if (record !== undefined && !isTerminal(record.state)) return record;
    if (record !== undefined) await this.#sayOutside(record, answer);
    if (writes.length > 0) await host.store.commit(writes);
    return undefined;
  }

  async #sayOutside({ sessionId, calleeId, callerId, state }: SessionRecord, answer: Answer): Promise<void> {
    const { host, channel } = this.#parts;
    const { sequence: last } = await readTail(host.store, sessionId);
    for (const { event, data } of sayings(answer, state, last)) {
      const payload = { event_type: event, sequence: NO_SEQUENCE, data: { ...data } };
      const draft = { type: 'event', senderId: calleeId, sessionId, payload } as const;
      await channel.publish(callerId, buildMessage(draft, { clock: host.clock, limits: host.settings.limits }));
    }
  }
}

/** Not when the session ended, or went elsewhere, in the meantime. */
async function saidInStream(session: LiveSession, answer: Answer, writes: readonly Write[]): Promise<boolean> {
  try {
    await session.answer((last) => sayings(answer, session.state, last), writes);
    return true;
  } catch (error) {
    const isGone = isHcpError(error) && /^session_(closed|taken_over|handed_over)$/.test(error.code);
    if (!isGone) throw error;
    return false;
  }
}

function sayings(answer: Answer, state: SessionState, last: number): readonly ExtensionSaying[] {
  if (answer.type === 'x-replay') return answer.unavailable.map((data) => ({ event: 'x-replay-unavailable', data }));
  const result_sent = state === 'COMPLETED' || state === 'FAILED';
  return [{ event: 'x-status', data: { state, last_sequence: last, result_sent } }];
}
