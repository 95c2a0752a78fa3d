import type { HarnessId, MessageId, SessionId } from '../ids.ts';

/** Why a message was refused, and the rule that says so. */
export const FAULT_RULES = {
  body_too_large: 'HCP-012',
  content_type: 'D-24',
  content_encoding: 'D-24',
  not_utf8: 'HCP-001',
  not_json: 'HCP-001',
  not_an_object: 'HCP-001',
  too_deep: 'HCP-012',
  too_many_keys: 'HCP-012',
  text_too_long: 'HCP-012',
  duplicate_key: 'HCP-001',
  prototype_key: 'HCP-007',
  not_plain_json: 'HCP-001',
  unsupported_version: 'D-23',
  unknown_type: 'HCP-130',
  schema: 'HCP-005',
  property_mismatch: 'HCP-002',
} as const;
export type FaultCode = keyof typeof FAULT_RULES;

/** The type of an offending value: its content never leaves the codec, it may be a secret. */
export type FoundType = 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object' | 'missing' | 'bytes' | 'other';

/** What can still be told of a refused message: enough to answer its sender or to count its place (D-27, D-41). */
export interface Salvage {
  readonly type?: string;
  readonly messageId?: MessageId;
  readonly sessionId?: SessionId;
  readonly sequence?: number;
  /** From the body's `caller_id`. */
  readonly callerId?: HarnessId;
  /** From the AMQP property `app_id`. */
  readonly appId?: HarnessId;
}

/** A refusal as data: which rule, where, what type of value was there. Holds no value of the message. */
export interface MessageFault {
  readonly code: FaultCode;
  readonly rule: (typeof FAULT_RULES)[FaultCode];
  /** JSON pointer (RFC 6901); empty for the message as a whole. */
  readonly pointer: string;
  readonly found: FoundType;
  /** One sentence, fit for a log and for the peer. */
  readonly message: string;
}

export function fault(code: FaultCode, pointer: string, found: FoundType, message: string): MessageFault {
  return { code, rule: FAULT_RULES[code], pointer: pointer.slice(0, 200), found, message };
}

export function typeOf(value: unknown): FoundType {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  const type = typeof value;
  return type === 'boolean' || type === 'number' || type === 'string' || type === 'object' ? type : 'other';
}

/** One step of a JSON pointer. */
export function pointerStep(key: string | number): string {
  return `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
