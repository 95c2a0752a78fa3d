import type { SessionRecord } from '../session/record.ts';
import { isSameToken } from '../session/token.ts';
import { refusedNote } from './audit-notes.ts';
import type { ReceivedCommand } from './command-channel.ts';
import { vouchedFor } from './gate/policy.ts';
import type { Host } from './host.ts';
import type { CalleeSettings } from './options.ts';

/** A command about a session, and who sent it. */
export type SessionCommand = Pick<ReceivedCommand, 'userId' | 'appId'> & {
  readonly message: {
    readonly type: 'abort' | 'x-replay' | 'x-status' | 'x-pause' | 'x-resume';
    readonly session_id: string;
    readonly message_id: string;
    readonly payload: { readonly session_token?: string };
  };
};

/**
 * Whether it comes from the caller of the session, by what the broker and the token say of the sender (D-16). A refusal
 * is put on record; the sender hears nothing, as if there were no such session.
 */
export async function isAuthorised(host: Host, record: SessionRecord, command: SessionCommand): Promise<boolean> {
  const why = refusal(record, command, host.settings);
  if (why === undefined) return true;
  const { message, appId, userId } = command;
  const { type, session_id, message_id } = message;
  const { callerId: caller_id, state } = record;
  const audit = `${type.replace('x-', '')}_refused`;
  const about = { audit, type, session_id, message_id, caller_id, state, app_id: appId, user_id: userId, why };
  host.logger.warn(about, 'Command refused');
  await host.note(refusedNote(record, command, why));
  return false;
}

function refusal(
  record: SessionRecord,
  { message, userId, appId }: SessionCommand,
  { abortToken, policy }: CalleeSettings,
): string | undefined {
  if (appId !== undefined && appId !== record.callerId) return 'another caller sent it';
  const vouched = vouchedFor(policy, userId);
  if (vouched !== undefined && vouched !== record.callerId) return 'another caller sent it';
  if (vouched === undefined && (policy.identity === 'login' || (record.userId ?? userId) !== userId)) {
    return 'another login sent it';
  }
  const { session_token: token } = message.payload;
  // Before it is accepted it has none.
  if (token === undefined) return abortToken === 'required' && record.token ? 'it has no token' : undefined;
  // Its time does not matter: stopping is always safe (D-17), and the session ends with it anyway.
  return isSameToken(token, record.token ?? '') ? undefined : 'its token is wrong';
}
