import { parseMessage } from '../../shared/messages/parse.ts';
import type { Delivery } from '../../shared/transport/transport.ts';

/** One message as it came, and what can be made of it. Judged by its body alone: properties are a check of their own. */
export interface Heard {
  readonly delivery: Delivery;
  readonly text: string;
  /** Nothing is known of what is inside: look with {@link at}. */
  readonly body: unknown;
  readonly type: string;
  readonly messageId: string;
  readonly sessionId: string | null;
  /** What is wrong with it by its schema. */
  readonly fault: string | undefined;
}

export function hear(delivery: Delivery): Heard {
  const text = Buffer.from(delivery.body).toString();
  const body = parseJson(text);
  const parsed = parseMessage(delivery.body, {});
  return {
    delivery,
    text,
    body,
    type: String(valueAt(body, '/type')),
    messageId: String(valueAt(body, '/message_id')).toLowerCase(),
    sessionId: (valueAt(body, '/session_id') as string | null | undefined) ?? null, // its schema is asked above
    fault: parsed.ok ? undefined : parsed.fault.message,
  };
}

/** The value at a JSON pointer of the body; `undefined` where there is none. */
export function at({ body }: Pick<Heard, 'body'>, pointer: string): unknown {
  return valueAt(body, pointer);
}

function valueAt(value: unknown, pointer: string): unknown {
  const steps = pointer.split('/').slice(1);
  return steps.reduce<unknown>((inner, step) => {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    const isHolder = typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key);
    return isHolder ? (inner as Record<string, unknown>)[key] : undefined;
  }, value);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isEvent(heard: Heard, eventType?: string): boolean {
  return heard.type === 'event' && (eventType === undefined || at(heard, '/payload/event_type') === eventType);
}

export function sequenceOf(heard: Heard): number {
  return Number(at(heard, '/payload/sequence'));
}

/** When it was said, in milliseconds, by the clock of whoever said it: how long it was on its way does not count. */
export function timeOf(heard: Heard): number {
  return Date.parse(String(at(heard, '/timestamp')));
}

/** A message in a few words: `E3 progress`, `E4 RUNNING→COMPLETED task_completed`, `task_failed timeout`. */
export function tell(heard: Heard): string {
  const say = (pointer: string) => String(at(heard, `/payload/${pointer}`));
  switch (heard.type) {
    case 'task_rejected':
      return `task_rejected ${say('reason_code')}`;
    case 'task_failed':
      return `task_failed ${say('error_code')}`;
    case 'event':
      return `E${say('sequence')} ${tellEvent(heard, say)}`;
    default:
      return heard.type;
  }
}

function tellEvent(heard: Heard, say: (pointer: string) => string): string {
  if (isEvent(heard, 'state_changed')) return `${say('data/from_state')}→${say('data/to_state')} ${say('data/reason')}`;
  if (isEvent(heard, 'session_closed')) return `closed ${say('data/final_state')} ${say('data/reason')}`;
  return say('event_type');
}
