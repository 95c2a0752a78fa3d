import { type Clock, systemClock } from '../clock.ts';
import { HcpError } from '../errors.ts';
import { type MessageId, newMessageId, parseHarnessId, parseSessionId } from '../ids.ts';
import { traceHeaders } from '../telemetry.ts';
import type { MessageProperties } from '../transport/transport.ts';
import type { MessageFault } from './fault.ts';
import { inspectJson } from './json-value.ts';
import { DEFAULT_MESSAGE_LIMITS, type MessageLimits } from './limits.ts';
import { type ExtensionCommands, HCP_VERSION, IN_REPLY_TO_HEADER, type Messages } from './message.ts';
import { isEventType, isExtensionEvent, type MessageType, schemaFault } from './validators.ts';

/** What we send: the seven messages, and the commands of the extensions we know. */
type Sendable = Messages & ExtensionCommands;

export interface MessageDraft<Type extends keyof Sendable> {
  readonly type: Type;
  readonly sessionId: Sendable[Type]['session_id'];
  readonly payload: Sendable[Type]['payload'];
  /** Our own id, caller or callee: goes into `app_id`. */
  readonly senderId: string;
  /** @default a new UUID */
  readonly messageId?: MessageId;
}

export interface BuildOptions {
  readonly clock?: Clock;
  readonly limits?: MessageLimits;
}

/** A message ready to be stored and published: sending it again means sending these bytes again. */
export interface BuiltMessage<Type extends keyof Sendable = MessageType> {
  readonly message: Sendable[Type];
  readonly body: Buffer;
  readonly properties: MessageProperties;
}

/**
 * Makes a message of ours, validated before it can be published (HCP-005). Throws `message_invalid`, naming the field,
 * or `message_too_large`.
 */
export function buildMessage<Type extends keyof Sendable>(
  draft: MessageDraft<Type>,
  { clock = systemClock, limits = DEFAULT_MESSAGE_LIMITS }: BuildOptions = {},
): BuiltMessage<Type> {
  const now = clock.now();
  // Assembled from the draft's own fields; the schema check below is what makes the type true.
  const message = {
    hcp_version: HCP_VERSION,
    message_id: draft.messageId ?? newMessageId(),
    timestamp: new Date(now).toISOString(),
    session_id: draft.sessionId === null ? null : parseSessionId(draft.sessionId),
    type: draft.type,
    payload: draft.payload,
  } as unknown as Sendable[Type];
  const invalid = inspectJson(message, limits).fault ?? schemaFault(draft.type, message) ?? eventFault(message);
  if (invalid) throw invalidMessage(draft.type, invalid);
  const body = Buffer.from(JSON.stringify(message));
  if (body.byteLength > limits.bodyBytes) {
    throw new HcpError(
      'message_too_large',
      `The ${draft.type} has ${body.byteLength} bytes, allowed are ${limits.bodyBytes}; give large data by address`,
    );
  }
  return { message, body, properties: propertiesOf(message, draft.senderId, now) };
}

/** A message we built earlier, from its stored bytes: the bytes stay as they are. */
export function restoreMessage(body: Buffer, senderId: string): BuiltMessage {
  // Only what buildMessage made is stored.
  const message = JSON.parse(body.toString()) as Messages[MessageType];
  return { message, body, properties: propertiesOf(message, senderId, Date.parse(message.timestamp)) };
}

/** Senders use the nine standard events or an extension's own (D-25). */
function eventFault(message: Sendable[keyof Sendable]): MessageFault | undefined {
  if (message.type !== 'event') return undefined;
  const { event_type: eventType, data } = message.payload;
  if (isEventType(eventType) || isExtensionEvent(eventType))
    return schemaFault(`event:${eventType}`, data, '/payload/data');
  if (/^x-[a-z0-9-]{1,60}$/.test(eventType)) return undefined;
  throw new HcpError('message_invalid', '/payload/event_type is no standard event and does not start with "x-"');
}

function invalidMessage(type: string, { message, code, pointer }: MessageFault): HcpError {
  const reason = `${code} at ${pointer || '/'}`;
  return new HcpError(
    isTooLarge(code) ? 'message_too_large' : 'message_invalid',
    `Cannot send this ${type}: ${message}`,
    {
      reason,
    },
  );
}

function isTooLarge(code: MessageFault['code']): boolean {
  return code === 'too_deep' || code === 'too_many_keys' || code === 'text_too_long';
}

function propertiesOf(message: Sendable[keyof Sendable], senderId: string, now: number): MessageProperties {
  const headers = traceHeaders();
  const inReplyTo = 'in_reply_to' in message.payload ? message.payload.in_reply_to : undefined;
  if (inReplyTo !== undefined) headers[IN_REPLY_TO_HEADER] = inReplyTo;
  return {
    messageId: message.message_id,
    timestamp: Math.floor(now / 1000),
    ...(message.session_id === null ? {} : { correlationId: message.session_id }),
    contentType: 'application/json',
    contentEncoding: 'utf-8',
    type: message.type,
    appId: parseHarnessId(senderId, 'senderId'),
    headers,
  };
}
