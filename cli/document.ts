import { offer } from '../callee/capabilities.ts';
import { schemas } from '../schemas/index.ts';
import type { Capability } from '../schemas/types.ts';
import { type FaultCode, type FoundType, type MessageFault, typeOf } from '../shared/messages/fault.ts';
import { decodeJson } from '../shared/messages/json-text.ts';
import { DEFAULT_MESSAGE_LIMITS } from '../shared/messages/limits.ts';
import { parseMessage } from '../shared/messages/parse.ts';
import {
  EXTENSION_COMMANDS,
  isExtensionCommand,
  isExtensionEvent,
  isMessageType,
  MESSAGE_TYPES,
  type SchemaName,
  schemaFault,
} from '../shared/messages/validators.ts';

/** What was found out about a JSON document. */
export interface Finding {
  /** Which schema applies; missing where that cannot be told. */
  readonly schema: SchemaName | undefined;
  readonly fault: DocumentFault | undefined;
}

export interface DocumentFault {
  readonly code: FaultCode | 'unrecognised' | 'unusable';
  /** JSON pointer; empty for the document as a whole. */
  readonly pointer: string;
  readonly found: FoundType;
  /** One sentence. */
  readonly message: string;
  readonly advice: string;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** As if it had just come from a broker. */
const PROPERTIES = { contentType: 'application/json', contentEncoding: 'utf-8' };

/** Those that something by itself can be checked against. */
export const SCHEMA_NAMES = (Object.keys(schemas) as SchemaName[]).filter((name) => name !== 'common');

/** Looks for the first fault of a document, against the schema it is for, or the one it was named. */
export function examine(bytes: Uint8Array, named?: SchemaName): Finding {
  const decoded = decodeJson(bytes, DEFAULT_MESSAGE_LIMITS);
  if ('fault' in decoded) return { schema: named, fault: advised(decoded.fault, named) };
  const { value } = decoded;
  if (named !== undefined) return { schema: named, fault: faultOf(named, value) };
  if (isMessage(value)) return examineMessage(bytes, value);
  const schema = recognise(value);
  return { schema, fault: schema === undefined ? unrecognised(value) : faultOf(schema, value) };
}

function isMessage(value: unknown): value is JsonObject {
  const { hcp_version: version, type, payload } = Object(value) as JsonObject;
  return version !== undefined || payload !== undefined || isMessageType(type) || isExtensionCommand(type);
}

function examineMessage(bytes: Uint8Array, { type, payload }: JsonObject): Finding {
  const schema: SchemaName = isMessageType(type) || isExtensionCommand(type) ? type : 'envelope';
  const parsed = parseMessage(bytes, PROPERTIES);
  if (!parsed.ok) return { schema, fault: advised(parsed.fault, schemaAt(schema, payload, parsed.fault)) };
  const { message } = parsed;
  if (message.type !== 'event' || !isExtensionEvent(message.payload.event_type)) return { schema, fault: undefined };
  const name: SchemaName = `event:${message.payload.event_type}`;
  return { schema, fault: advised(schemaFault(name, message.payload.data, '/payload/data'), name) };
}

/** The data of an event has a schema of its own. */
function schemaAt(schema: SchemaName, payload: unknown, { pointer }: MessageFault): SchemaName {
  const name = `event:${(Object(payload) as JsonObject).event_type}`;
  const isOfData = schema === 'event' && pointer.startsWith('/payload/data/') && Object.hasOwn(schemas, name);
  return isOfData ? (name as SchemaName) : schema; // just looked up
}

/** The one that knows the most of its fields, and of several the one that misses the fewest. */
function recognise(value: unknown): SchemaName | undefined {
  if (typeOf(value) !== 'object') return undefined;
  const keys = Object.keys(value as JsonObject);
  const [best] = SCHEMA_NAMES.filter((name) => !isMessageType(name) && !isExtensionCommand(name) && name !== 'envelope')
    .map((name) => {
      const { properties = {}, required = [] }: { properties?: object; required?: readonly string[] } = schemas[name];
      const known = keys.filter((key) => Object.hasOwn(properties, key)).length;
      return { name, known, missing: required.filter((key) => !keys.includes(key)).length };
    })
    .filter(({ known }) => known > 0)
    .sort((a, b) => b.known - a.known || a.missing - b.missing);
  return best?.name;
}

function faultOf(schema: SchemaName, value: unknown): DocumentFault | undefined {
  const fault = schemaFault(schema, value);
  if (fault) return advised(fault, schema);
  // By now it has the shape of one.
  return schema === 'capability' ? capabilityFault(value as Capability) : undefined;
}

/** What the schema cannot say: that its own schemas are some, and its version one. */
function capabilityFault(declaration: Capability): DocumentFault | undefined {
  try {
    offer(declaration, async () => ({ outputs: {} }));
    return undefined;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const advice = 'Correct it: no callee would offer this';
    return { code: 'unusable', pointer: '', found: 'object', message: error.message, advice };
  }
}

function unrecognised(value: unknown): DocumentFault {
  const found = typeOf(value);
  const message = `Nothing of HCP looks like this (found: ${found})`;
  const advice = 'Name what it should be with --schema; hcp schemas lists them';
  return { code: 'unrecognised', pointer: '', found, message, advice };
}

function advised(fault: MessageFault, schema: SchemaName | undefined): DocumentFault;
function advised(fault: MessageFault | undefined, schema: SchemaName | undefined): DocumentFault | undefined;
function advised(fault: MessageFault | undefined, schema: SchemaName | undefined): DocumentFault | undefined {
  if (fault === undefined) return undefined;
  const { code, pointer, found, message } = fault;
  return { code, pointer, found, message, advice: adviceFor(fault, schema) };
}

function adviceFor({ code, found }: MessageFault, schema: SchemaName | undefined): string {
  if (code !== 'schema') return ADVICE[code];
  return `${found === 'missing' ? 'Add it' : 'Change it'}: hcp schemas print ${schema} tells what it must be`;
}

const ADVICE: Readonly<Record<Exclude<FaultCode, 'schema'>, string>> = {
  body_too_large: 'Give large data by address, as an artifact',
  content_type: 'Send it as application/json',
  content_encoding: 'Send it as utf-8',
  not_utf8: 'Save it as UTF-8',
  not_json: 'Correct the JSON',
  not_an_object: 'Write an object: {…}',
  too_deep: 'Nest less',
  too_many_keys: 'Use fewer keys, or give large data by address',
  text_too_long: 'Give large data by address, as an artifact',
  duplicate_key: 'Remove one of the two',
  prototype_key: 'Use another name',
  not_plain_json: 'Use JSON values alone',
  unsupported_version: 'Write 1.0',
  unknown_type: `Write one of: ${[...MESSAGE_TYPES, ...EXTENSION_COMMANDS].join(', ')}`,
  property_mismatch: 'Make both the same',
};
