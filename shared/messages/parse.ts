import { isHarnessId, isUuidV4, type MessageId, type SessionId } from '../ids.ts';
import type { MessageProperties } from '../transport/transport.ts';
import { fault, type MessageFault, pointerStep, type Salvage, typeOf } from './fault.ts';
import { decodeJson } from './json-text.ts';
import { deepFreeze } from './json-value.ts';
import { DEFAULT_MESSAGE_LIMITS, type MessageLimits } from './limits.ts';
import type { HcpMessage } from './message.ts';
import { isEventType, isExtensionCommand, isMessageType, schemaFault } from './validators.ts';

export interface ParsedMessage {
  readonly ok: true;
  /** Frozen. Ids are in lower case (D-31); fields we do not know are still there. */
  readonly message: HcpMessage;
  /** What was odd but allowed, one sentence each. */
  readonly warnings: readonly string[];
}

export interface RefusedMessage {
  readonly ok: false;
  readonly fault: MessageFault;
  readonly salvage: Salvage;
}

/**
 * Reads one received message. Its content is hostile until this says otherwise; being refused is an answer, not an
 * exception. A valid message has been checked against its schema, event data included (HCP-005).
 */
export function parseMessage(
  body: Uint8Array,
  properties: MessageProperties,
  limits: MessageLimits = DEFAULT_MESSAGE_LIMITS,
): ParsedMessage | RefusedMessage {
  const unfit = contentFault(properties);
  if (unfit) return { ok: false, fault: unfit, salvage: salvage(undefined, properties) };
  const decoded = decodeJson(body, limits);
  if ('fault' in decoded) return { ok: false, fault: decoded.fault, salvage: salvage(undefined, properties) };
  const { value } = decoded;
  if (!isObject(value)) {
    const refused = fault('not_an_object', '', typeOf(value), 'The body is JSON, but not an object');
    return { ok: false, fault: refused, salvage: salvage(undefined, properties) };
  }
  const refused = versionFault(value) ?? typeFault(value) ?? shapeFault(value) ?? correlationFault(value, properties);
  if (refused) return { ok: false, fault: refused, salvage: salvage(value, properties) };
  lowerCaseIds(value);
  // The checks above are what makes it a message.
  const message = deepFreeze(value) as unknown as HcpMessage;
  return { ok: true, message, warnings: warnings(message, properties) };
}

type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function contentFault({ contentType, contentEncoding }: MessageProperties): MessageFault | undefined {
  if (contentType !== undefined && contentType.toLowerCase() !== 'application/json') {
    return fault('content_type', '', 'other', 'The content type is not application/json');
  }
  if (contentEncoding !== undefined && contentEncoding.toLowerCase() !== 'utf-8') {
    return fault('content_encoding', '', 'other', 'The content encoding is not utf-8');
  }
  return undefined;
}

/** Before the schema: a message of another major version may look like anything (D-23). */
function versionFault({ hcp_version: version }: JsonObject): MessageFault | undefined {
  if (typeof version !== 'string' || !/^\d{1,6}\.\d{1,6}$/.test(version) || version.startsWith('1.')) return undefined;
  return fault('unsupported_version', '/hcp_version', 'string', '/hcp_version names a major version other than 1');
}

function typeFault({ type }: JsonObject): MessageFault | undefined {
  if (typeof type !== 'string' || isMessageType(type) || /^x-[a-z0-9-]{1,60}$/.test(type)) return undefined;
  return fault('unknown_type', '/type', 'string', '/type is no message type of HCP');
}

function shapeFault(value: JsonObject): MessageFault | undefined {
  const { type } = value;
  const invalid = schemaFault(isMessageType(type) || isExtensionCommand(type) ? type : 'envelope', value);
  if (invalid || value.type !== 'event') return invalid;
  // The event schema has just said that these are there.
  const { event_type: eventType, data } = value.payload as { event_type: string; data: unknown };
  return isEventType(eventType) ? schemaFault(`event:${eventType}`, data, '/payload/data') : undefined;
}

/** Session lanes are cut by `correlation_id`, so one that points elsewhere is no slip to forgive. */
function correlationFault(value: JsonObject, { correlationId }: MessageProperties): MessageFault | undefined {
  if (correlationId === undefined || value.session_id === null) return undefined;
  if (correlationId.toLowerCase() === String(value.session_id).toLowerCase()) return undefined;
  return fault('property_mismatch', '/session_id', 'string', '/session_id differs from the property correlation_id');
}

function lowerCaseIds(message: JsonObject): void {
  for (const [object, field] of [
    [message, 'message_id'],
    [message, 'session_id'],
    [message.payload as JsonObject, 'in_reply_to'],
  ] as const) {
    const id = object[field];
    if (typeof id === 'string') object[field] = id.toLowerCase();
  }
}

function warnings(message: HcpMessage, properties: MessageProperties): string[] {
  const found: string[] = [];
  if (properties.contentType === undefined) found.push('The property content_type is missing');
  if (properties.contentEncoding === undefined) found.push('The property content_encoding is missing');
  if (properties.messageId !== undefined && properties.messageId.toLowerCase() !== message.message_id) {
    found.push(`The property message_id differs from ${pointerStep('message_id')}; the body counts`);
  }
  if (properties.type !== undefined && properties.type !== message.type) {
    found.push(`The property type differs from ${pointerStep('type')}; the body counts`);
  }
  return found;
}

function salvage(body: JsonObject | undefined, properties: MessageProperties): Salvage {
  const payload = isObject(body?.payload) ? body.payload : {};
  const type = typeof body?.type === 'string' ? body.type : properties.type;
  const messageId = [body?.message_id, properties.messageId].find(isUuidV4);
  const sessionId = [body?.session_id, properties.correlationId].find(isUuidV4);
  const { sequence, caller_id: callerId } = payload;
  return {
    ...(type === undefined ? {} : { type }),
    ...(messageId === undefined ? {} : { messageId: messageId.toLowerCase() as MessageId }),
    ...(sessionId === undefined ? {} : { sessionId: sessionId.toLowerCase() as SessionId }),
    ...(Number.isSafeInteger(sequence) && (sequence as number) >= 0 ? { sequence: sequence as number } : {}),
    ...(isHarnessId(callerId) ? { callerId } : {}),
    ...(isHarnessId(properties.appId) ? { appId: properties.appId } : {}),
  };
}
