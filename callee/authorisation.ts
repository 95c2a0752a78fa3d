import { createHash, timingSafeEqual } from 'node:crypto';
import type { SessionRecord } from '../session/record.ts';
import type { ReceivedCommand } from './command-channel.ts';
import type { Host } from './host.ts';

/** A command about a session, and who sent it. */
export type SessionCommand = Pick<ReceivedCommand, 'userId' | 'appId'> & {
  readonly message: {
    readonly type: 'abort' | 'x-replay' | 'x-status';
    readonly session_id: string;
    readonly message_id: string;
    readonly payload: { readonly session_token?: string };
  };
};

/**
 * Whether it comes from the caller of the session, by what the broker and the token say of the sender (D-16). A refusal
 * is put on record; the sender hears nothing, as if there were no such session.
 */
export function isAuthorised(host: Host, record: SessionRecord, command: SessionCommand): boolean {
  const why = refusal(record, command, host.settings.abortToken);
  if (why === undefined) return true;
  const { message, appId, userId } = command;
  const { type, session_id, message_id } = message;
  const { callerId: caller_id, state } = record;
  const audit = `${type.replace('x-', '')}_refused`;
  const about = { audit, type, session_id, message_id, caller_id, state, app_id: appId, user_id: userId, why };
  host.logger.warn(about, 'Command refused');
  return false;
}

function refusal(
  record: SessionRecord,
  { message, userId, appId }: SessionCommand,
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
