import type { TaskSubmit } from '../schemas/types.ts';
import { EMPTY_LOG } from '../session/log.ts';
import { newRecord, rowOf, type SessionRecord } from '../session/record.ts';
import { isHcpError } from '../shared/errors.ts';
import { isHarnessId, newSessionId } from '../shared/ids.ts';
import { restoreMessage } from '../shared/messages/build.ts';
import { sha256 } from '../shared/sha256.ts';
import type { Write } from '../shared/store/store.ts';
import type { Admissions } from './admissions.ts';
import type { CommandChannel, ReceivedCommand } from './command-channel.ts';
import { vouchedFor } from './gate/policy.ts';
import type { Host } from './host.ts';
import { LiveSession } from './session.ts';

export interface SubmissionParts {
  readonly host: Host;
  readonly admissions: Admissions;
  readonly channel: CommandChannel;
  readonly live: Map<string, LiveSession>;
  readonly instanceId: () => string;
}

/** Takes tasks in: each once, whoever asks however often (HCP-102). */
export class Submissions {
  readonly #parts: SubmissionParts;

  constructor(parts: SubmissionParts) {
    this.#parts = parts;
  }

  /** Resolves when the decision, or that a human has to decide, is durable; the work goes on after that. */
  async take(command: ReceivedCommand & { readonly message: TaskSubmit }): Promise<void> {
    const { host, live } = this.#parts;
    const record = this.#record(command);
    const { calleeId, callerId, messageId, sessionId } = record;
    const fingerprint = sha256(command.body);
    const row = { callee_id: calleeId, caller_id: callerId, message_id: messageId, session_id: sessionId };
    const writes: Write[] = [
      { insert: 'answers', row: { ...row, fingerprint, answer: null } },
      { insert: 'sessions', row: rowOf(record) },
    ];
    // Known as ours before it is stored: a sweep must not take it for one that nobody runs.
    const session = new LiveSession(host, record, EMPTY_LOG);
    live.set(sessionId, session);
    try {
      const outcome = await host.committer.commit({ fence: { broken: false }, entries: [], writes });
      if (outcome === 'committed' || (await this.#isOurs(record))) return await this.#parts.admissions.judge(session);
    } catch (error) {
      if (!isHcpError(error, 'session_taken_over')) session.lose();
      throw error;
    }
    host.outbox.drop(sessionId);
    host.forget(session);
    await this.#repeat(record, fingerprint);
  }

  #record({
    message,
    body,
    headers,
    userId,
    appId,
  }: ReceivedCommand & { readonly message: TaskSubmit }): SessionRecord {
    const { host, instanceId } = this.#parts;
    const vouched = vouchedFor(host.settings.policy, userId);
    const names = {
      sessionId: newSessionId(),
      calleeId: host.settings.calleeId,
      // The true sender: whoever it claims to be must neither get its answer nor lose a message id to it (HCP-303).
      callerId: isHarnessId(vouched) ? vouched : message.payload.caller_id,
    };
    return newRecord({
      ...names,
      messageId: message.message_id,
      owner: instanceId(),
      epoch: 1,
      request: Buffer.from(body).toString(),
      userId,
      appId,
      trace: JSON.stringify(host.telemetry.began(names, headers)),
      createdAt: host.clock.now(),
    });
  }

  /** A commit whose answer was lost meets itself. */
  async #isOurs({ sessionId }: SessionRecord): Promise<boolean> {
    return (await this.#parts.host.store.get('sessions', [sessionId])) !== undefined;
  }

  /** The same submit again: the stored answer, byte for byte, or nothing while there is none (D-15). */
  async #repeat({ calleeId, callerId, messageId }: SessionRecord, fingerprint: string): Promise<void> {
    const { host, channel } = this.#parts;
    const row = await host.store.get('answers', [calleeId, callerId, messageId]);
    const known = { message_id: messageId, caller_id: callerId, session_id: row?.session_id };
    if (row?.fingerprint !== fingerprint) {
      host.logger.error(known, 'A message id was used again for another task: the first answer counts');
    }
    if (typeof row?.answer !== 'string') return host.logger.info(known, 'Repeated submit: not decided yet');
    host.logger.info(known, 'Repeated submit: answered as before');
    await channel.publish(callerId, restoreMessage(Buffer.from(row.answer), calleeId));
  }
}
