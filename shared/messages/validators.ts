import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { schemas } from '../../schemas/index.ts';
import { fault, type MessageFault, pointerStep, typeOf } from './fault.ts';

export const MESSAGE_TYPES = [
  'task_submit',
  'abort',
  'task_accepted',
  'task_rejected',
  'event',
  'task_completed',
  'task_failed',
] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

export const EVENT_TYPES = [
  'session_created',
  'state_changed',
  'progress',
  'intermediate_result',
  'log',
  'warning',
  'error',
  'checkpoint_created',
  'session_closed',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export const EXTENSION_COMMANDS = ['x-replay', 'x-status', 'x-pause', 'x-resume'] as const;
export type ExtensionCommand = (typeof EXTENSION_COMMANDS)[number];

export const EXTENSION_EVENTS = ['x-replay-unavailable', 'x-status', 'x-approval-pending'] as const;
export type ExtensionEvent = (typeof EXTENSION_EVENTS)[number];

export function isMessageType(type: unknown): type is MessageType {
  return MESSAGE_TYPES.includes(type as MessageType);
}

export function isEventType(type: unknown): type is EventType {
  return EVENT_TYPES.includes(type as EventType);
}

export function isExtensionCommand(type: unknown): type is ExtensionCommand {
  return EXTENSION_COMMANDS.includes(type as ExtensionCommand);
}

export function isExtensionEvent(type: unknown): type is ExtensionEvent {
  return EXTENSION_EVENTS.includes(type as ExtensionEvent);
}

/** Name of a schema: the last part of its `$id`. */
export type SchemaName = keyof typeof schemas;

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, formats: { 'date-time': isCalendarDate } });
for (const schema of Object.values(schemas)) ajv.addSchema(schema);

const compiled = new Map<SchemaName, ValidateFunction>();

/** The first fault of a value against one of the protocol's schemas, its pointer below `at`; `undefined` when valid. */
export function schemaFault(name: SchemaName, value: unknown, at = ''): MessageFault | undefined {
  let validate = compiled.get(name);
  if (validate === undefined) {
    validate = ajv.getSchema(`urn:hcp:1.0:${name}`) as ValidateFunction;
    compiled.set(name, validate);
  }
  // The last error is the outermost: of "text or null" it says that neither fits.
  return validate(value) ? undefined : describe((validate.errors as ErrorObject[]).at(-1) as ErrorObject, value, at);
}

function describe(error: ErrorObject, root: unknown, at: string): MessageFault {
  const missing = error.keyword === 'required' ? String(error.params.missingProperty) : undefined;
  if (missing !== undefined) {
    const pointer = at + error.instancePath + pointerStep(missing);
    return fault('schema', pointer, 'missing', `${pointer} is missing`);
  }
  const pointer = at + error.instancePath;
  const allowed = error.keyword === 'enum' ? `: ${(error.params.allowedValues as string[]).join(', ')}` : '';
  const found = typeOf(valueAt(root, error.instancePath));
  return fault('schema', pointer, found, `${pointer || 'The message'} ${error.message}${allowed} (found: ${found})`);
}

function valueAt(root: unknown, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((value, step) => (value as Record<string, unknown>)[step], root);
}

/** The pattern has checked the form; this checks that the day exists. */
function isCalendarDate(text: string): boolean {
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number);
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}
