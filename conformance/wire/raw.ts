import { randomUUID } from 'node:crypto';
import type { MessageProperties } from '../../shared/transport/transport.ts';

/** A message made by hand: nothing of it has been checked. */
export interface RawMessage {
  readonly body: Uint8Array;
  readonly properties: MessageProperties;
}

/** What of a message is to be otherwise. A field that is `undefined` is left out. */
export interface Changes {
  readonly envelope?: Readonly<Record<string, unknown>>;
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly properties?: { readonly [Name in keyof MessageProperties]?: MessageProperties[Name] | undefined };
}

export interface RawParts extends Changes {
  readonly type: string;
  readonly senderId: string;
  /** @default null */
  readonly sessionId?: string | null;
  /** @default a new one */
  readonly messageId?: string;
}

/** A message as a well-behaved sender makes it, but for the changes asked for. */
export function rawMessage({ type, senderId, sessionId = null, ...parts }: RawParts): RawMessage {
  const { messageId = randomUUID(), envelope = {}, payload = {}, properties = {} } = parts;
  const timestamp = new Date();
  const message = {
    hcp_version: '1.0',
    message_id: messageId,
    timestamp: timestamp.toISOString(),
    session_id: sessionId,
    type,
    payload,
    ...envelope,
  };
  return {
    body: bytes(JSON.stringify(message)),
    properties: present({
      messageId,
      timestamp: Math.floor(timestamp.getTime() / 1000),
      correlationId: sessionId ?? undefined,
      contentType: 'application/json',
      contentEncoding: 'utf-8',
      type,
      appId: senderId,
      ...properties,
    }),
  };
}

export function bytes(text: string): Uint8Array {
  return Buffer.from(text);
}

export function textOf({ body }: RawMessage): string {
  return Buffer.from(body).toString();
}

/** A property that is `undefined` is not sent at all. */
function present(properties: NonNullable<Changes['properties']>): MessageProperties {
  const given = Object.entries(properties).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as MessageProperties; // the same, without the holes
}
