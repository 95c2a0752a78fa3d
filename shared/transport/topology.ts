import { parseHarnessId, parseSessionId } from '../ids.ts';
import { choiceOption, refuseUnknownOptions } from '../option-checks.ts';

/** The two exchanges of HCP, and ours for what could not be processed. All durable, without arguments. */
export const EXCHANGES = { 'hcp.commands': 'direct', 'hcp.events': 'topic', 'hcp.dead': 'direct' } as const;
export type ExchangeName = keyof typeof EXCHANGES;

/** Where a message goes: an exchange and a routing key. */
export interface Route {
  readonly exchange: ExchangeName;
  readonly routingKey: string;
}

/** The exchange between `hcp.events` and a caller's partitions. It hashes the session id carried in `correlationId`. */
export type HashExchangeName = `hcp.hash.${string}`;

/**
 * A share of what `hashedFrom` selects: of all queues bound to `exchange`, one gets all messages of a session, as long as
 * the queues stay the same. Messages without a session go to one of them too.
 */
export interface HashedBinding {
  readonly exchange: HashExchangeName;
  readonly hashedFrom: Route;
}

export type Binding = Route | HashedBinding;

/** A durable queue, fully spelled out, so that every transport makes the same one. */
export interface QueueDeclaration {
  readonly name: string;
  readonly bindings: readonly Binding[];
  /** Only one consumer at a time gets messages; the next takes over when it goes. */
  readonly singleActiveConsumer: boolean;
  /** After coming back this many times a message is dead-lettered. `undefined`: never. */
  readonly deliveryLimit: number | undefined;
  readonly maxLength: number | undefined;
  /** What happens to a publish that finds the queue full: refused, or the oldest message is dropped. */
  readonly overflow: 'reject-publish' | 'drop-head';
  readonly messageTtlMs: number | undefined;
  /** Rejected and given-up messages go to {@link deadLetterQueue}; without it they are gone. */
  readonly deadLetter: boolean;
}

/**
 * `safe` loses nothing: a full queue refuses, what fails is dead-lettered, nothing expires.
 * `spec` is the literal text of HCP L1: events expire after 24 h and a full queue drops its oldest (D-32).
 */
export type QueueProfile = 'safe' | 'spec';

export interface QueueOptions {
  /** @default 'safe' */
  readonly profile?: QueueProfile;
  /** @default true for events, false for commands */
  readonly singleActiveConsumer?: boolean;
  /** Upper bound of waiting messages. @default none in profile `safe`, 100,000 events in `spec` */
  readonly maxLength?: number;
}

const DELIVERY_LIMIT = 20;
const SPEC_EVENT_TTL_MS = 24 * 60 * 60 * 1000;
const SPEC_EVENT_LENGTH = 100_000;

/** Where a callee receives `task_submit` and `abort`. Never expires (hcp.md 2.3). */
export function commandQueue(calleeId: string, options: QueueOptions = {}): QueueDeclaration {
  const id = parseHarnessId(calleeId, 'calleeId');
  return {
    name: `hcp.cmd.${id}`,
    bindings: [commandRoute(id)],
    ...settings(options, { singleActiveConsumer: false, messageTtlMs: undefined, maxLength: undefined }),
  };
}

/** Where one of several instances of a callee is told to look into the store. Nothing in it is worth keeping. */
export function instanceQueue(calleeId: string, instanceId: string): QueueDeclaration {
  const route = instanceRoute(calleeId, instanceId);
  return {
    ...commandQueue(calleeId, { profile: 'spec', maxLength: 100 }),
    name: `hcp.cmd.${route.routingKey}`,
    bindings: [route],
  };
}

/** Where a caller receives everything callees send it. */
export function eventQueue(callerId: string, options: QueueOptions = {}): QueueDeclaration {
  const id = parseHarnessId(callerId, 'callerId');
  return {
    name: `hcp.evt.${id}`,
    bindings: [{ exchange: 'hcp.events', routingKey: `${id}.#` }],
    ...settings(options, { singleActiveConsumer: true, messageTtlMs: SPEC_EVENT_TTL_MS, maxLength: SPEC_EVENT_LENGTH }),
  };
}

/** One session's own event queue; its owner removes it when the session has ended. */
export function sessionQueue(callerId: string, sessionId: string, options: QueueOptions = {}): QueueDeclaration {
  const id = parseHarnessId(callerId, 'callerId');
  const session = parseSessionId(sessionId);
  return {
    ...eventQueue(id, options),
    name: `hcp.evt.${id}.${session}`,
    bindings: [{ exchange: 'hcp.events', routingKey: `${id}.${session}.#` }],
  };
}

/**
 * One of several queues that share a caller's events, numbered from 0. Use it instead of {@link eventQueue}: a caller that
 * has both gets every event twice. Sessions may change their queue whenever one is added or removed.
 */
export function partitionQueue(callerId: string, index: number, options: QueueOptions = {}): QueueDeclaration {
  const id = parseHarnessId(callerId, 'callerId');
  if (!Number.isSafeInteger(index) || index < 0) throw new TypeError('index must be 0 or a positive integer');
  return {
    ...eventQueue(id, options),
    name: `hcp.evt.${id}.p${index}`,
    bindings: [{ exchange: `hcp.hash.${id}`, hashedFrom: { exchange: 'hcp.events', routingKey: `${id}.#` } }],
  };
}

/**
 * Where what `queue` could not process waits for a person: `hcp.dead.cmd.lab` for `hcp.cmd.lab`. The partitions of a caller
 * share the one of its event queue, so that their number is no matter for whoever provisions or watches it.
 */
export function deadLetterQueue(queue: Pick<QueueDeclaration, 'name'>): QueueDeclaration {
  const routingKey = deadLetterKey(queue);
  return {
    name: routingKey.replace(/^hcp\./, 'hcp.dead.'),
    bindings: [{ exchange: 'hcp.dead', routingKey }],
    singleActiveConsumer: false,
    deliveryLimit: undefined,
    maxLength: undefined,
    overflow: 'reject-publish',
    messageTtlMs: undefined,
    deadLetter: false,
  };
}

/** The routing key under which `queue` dead-letters. */
export function deadLetterKey({ name }: Pick<QueueDeclaration, 'name'>): string {
  return name.replace(/^(hcp\.evt\.[^.]+)\.p\d+$/, '$1');
}

export function commandRoute(calleeId: string): Route {
  return { exchange: 'hcp.commands', routingKey: parseHarnessId(calleeId, 'calleeId') };
}

export function instanceRoute(calleeId: string, instanceId: string): Route {
  const { exchange, routingKey } = commandRoute(calleeId);
  return { exchange, routingKey: `${routingKey}.${parseHarnessId(instanceId, 'instanceId')}` };
}

/** The session word is `none` when there is no session, so `{caller}.*.task_rejected` still matches (D-02). */
export function eventRoute(callerId: string, sessionId: string | null, type: string): Route {
  const id = parseHarnessId(callerId, 'callerId');
  const session = sessionId === null ? 'none' : parseSessionId(sessionId);
  return { exchange: 'hcp.events', routingKey: `${id}.${session}.${type}` };
}

/** Whether a message with this route reaches a queue with that binding. */
export function bindingMatches(binding: Route, route: Route): boolean {
  if (binding.exchange !== route.exchange) return false;
  if (EXCHANGES[binding.exchange] === 'direct') return binding.routingKey === route.routingKey;
  return topicMatches(binding.routingKey.split('.'), route.routingKey.split('.'));
}

/** One binding as a broker holds it. */
export interface BindingStep {
  readonly source: ExchangeName | HashExchangeName;
  readonly routingKey: string;
  /** A queue, or a hash exchange. */
  readonly destination: string;
}

/** The routing key of a binding to a hash exchange is its weight: every partition has the same share. */
const EQUAL_SHARE = '1';

/** What to bind, in this order: a hash exchange that gets messages before it has a queue would lose them. */
export function bindingSteps({ name, bindings }: Pick<QueueDeclaration, 'name' | 'bindings'>): BindingStep[] {
  return bindings.flatMap((binding): BindingStep[] => {
    if (!('hashedFrom' in binding)) {
      return [{ source: binding.exchange, routingKey: binding.routingKey, destination: name }];
    }
    const { exchange, hashedFrom } = binding;
    return [
      { source: exchange, routingKey: EQUAL_SHARE, destination: name },
      { source: hashedFrom.exchange, routingKey: hashedFrom.routingKey, destination: exchange },
    ];
  });
}

export function isHashExchange(name: string): name is HashExchangeName {
  return name.startsWith('hcp.hash.');
}

/** AMQP topic rule: `*` is one word, `#` any number of words. */
function topicMatches(pattern: readonly string[], words: readonly string[]): boolean {
  const [head, ...rest] = pattern;
  if (head === undefined) return words.length === 0;
  if (head === '#') return topicMatches(rest, words) || (words.length > 0 && topicMatches(pattern, words.slice(1)));
  return words.length > 0 && (head === '*' || head === words[0]) && topicMatches(rest, words.slice(1));
}

/** Names the first setting in which two declarations of one queue differ. */
export function declarationDifference(
  wanted: QueueDeclaration,
  existing: QueueDeclaration,
): { setting: string; wanted: unknown; existing: unknown } | undefined {
  const settings = [
    'singleActiveConsumer',
    'deliveryLimit',
    'maxLength',
    'overflow',
    'messageTtlMs',
    'deadLetter',
  ] as const;
  const setting = settings.find((name) => wanted[name] !== existing[name]);
  return setting && { setting, wanted: wanted[setting], existing: existing[setting] };
}

function settings(
  options: QueueOptions,
  defaults: Pick<QueueDeclaration, 'singleActiveConsumer' | 'messageTtlMs' | 'maxLength'>,
): Omit<QueueDeclaration, 'name' | 'bindings'> {
  refuseUnknownOptions(options, ['profile', 'singleActiveConsumer', 'maxLength'], 'queue.');
  const { singleActiveConsumer, maxLength } = options;
  const profile = choiceOption<QueueProfile>(options.profile, 'queue.profile', ['safe', 'spec']);
  if (maxLength !== undefined && (!Number.isSafeInteger(maxLength) || maxLength < 1)) {
    throw new TypeError('maxLength must be a positive integer');
  }
  const safe = profile === 'safe';
  return {
    singleActiveConsumer: singleActiveConsumer ?? (safe && defaults.singleActiveConsumer),
    deliveryLimit: safe ? DELIVERY_LIMIT : undefined,
    maxLength: maxLength ?? (safe ? undefined : defaults.maxLength),
    overflow: safe ? 'reject-publish' : 'drop-head',
    messageTtlMs: safe ? undefined : defaults.messageTtlMs,
    deadLetter: safe,
  };
}
