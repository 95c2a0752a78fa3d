import type { MessageProperties as AmqpProperties, Options } from 'amqplib';
import { HcpError } from '../../errors.ts';
import type { MessageProperties, OutgoingMessage, ReceivedProperties } from '../transport.ts';

/** The protocol's own bound of a routing key and of a text property. */
const MAX_SHORT_STRING_BYTES = 255;
/** Half of what amqplib can encode, and far from the nesting that overflows its decoder on the other side. */
const MAX_HEADER_BYTES = 32 * 1024;
const MAX_HEADER_DEPTH = 32;

const TEXTS = ['messageId', 'correlationId', 'contentType', 'contentEncoding', 'type', 'appId'] as const;

/** Throws `message_too_large`, naming the part, for what amqplib would only refuse with a RangeError. */
export function refuseOversized({ route, properties }: OutgoingMessage): void {
  refuseLongText('routingKey', route.routingKey);
  for (const name of TEXTS) refuseLongText(name, properties[name]);
  const { headers } = properties;
  if (headers !== undefined && tableBytes(headers, 0) > MAX_HEADER_BYTES) {
    throw new HcpError(
      'message_too_large',
      `The headers exceed ${MAX_HEADER_BYTES} bytes or ${MAX_HEADER_DEPTH} levels`,
      {
        reason: 'headers',
      },
    );
  }
}

function refuseLongText(name: string, text: string | undefined): void {
  // A character is at most three bytes here: most texts need no counting.
  if (text === undefined || text.length * 3 <= MAX_SHORT_STRING_BYTES) return;
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_SHORT_STRING_BYTES) return;
  throw new HcpError('message_too_large', `${name} has ${bytes} bytes, AMQP allows ${MAX_SHORT_STRING_BYTES}`, {
    reason: name,
  });
}

function tableBytes(table: object, depth: number): number {
  let sum = 4;
  for (const [key, value] of Object.entries(table)) sum += 1 + Buffer.byteLength(key) + fieldBytes(value, depth);
  return sum;
}

function fieldBytes(value: unknown, depth: number): number {
  if (depth > MAX_HEADER_DEPTH) return Number.POSITIVE_INFINITY;
  if (typeof value === 'string') return 5 + Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null) return 9;
  if (ArrayBuffer.isView(value)) return 5 + value.byteLength;
  return 1 + tableBytes(value, depth + 1);
}

/** Our properties for amqplib, with what every HCP message carries (HCP-002, HCP-004). */
export function outgoing(properties: MessageProperties, login: string | undefined): Options.Publish {
  const { messageId, timestamp, correlationId, contentType, contentEncoding, type, appId, headers } = properties;
  return {
    mandatory: true,
    persistent: true,
    ...(login !== undefined && { userId: login }),
    ...(messageId !== undefined && { messageId }),
    ...(timestamp !== undefined && { timestamp }),
    ...(correlationId !== undefined && { correlationId }),
    ...(contentType !== undefined && { contentType }),
    ...(contentEncoding !== undefined && { contentEncoding }),
    ...(type !== undefined && { type }),
    ...(appId !== undefined && { appId }),
    ...(headers !== undefined && { headers: { ...headers } }),
  };
}

/** What came with a message; what the sender left out stays out. */
export function received(properties: AmqpProperties): ReceivedProperties {
  const { messageId, timestamp, correlationId, contentType, contentEncoding, type, appId, userId, headers } =
    properties;
  return {
    ...(messageId !== undefined && { messageId }),
    ...(timestamp !== undefined && { timestamp }),
    ...(correlationId !== undefined && { correlationId }),
    ...(contentType !== undefined && { contentType }),
    ...(contentEncoding !== undefined && { contentEncoding }),
    ...(type !== undefined && { type }),
    ...(appId !== undefined && { appId }),
    ...(userId !== undefined && { userId }),
    // amqplib cannot send "no headers": it sends an empty table.
    ...(headers !== undefined && Object.keys(headers).length > 0 && { headers }),
  };
}
