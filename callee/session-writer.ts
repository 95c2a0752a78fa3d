import { type Context, context } from '@opentelemetry/api';
import type { AuditDraft } from '../session/audit/index.ts';
import type { Fence } from '../session/group-committer.ts';
import { isTerminal, type SessionState } from '../session/lifecycle.ts';
import { type LogEntry, type LogTail, messageEntry, readLog, tailAfter, takeoverEntry } from '../session/log.ts';
import { changes, type SessionRecord } from '../session/record.ts';
import { HcpError } from '../shared/errors.ts';
import { type BuiltMessage, buildMessage, restoreMessage } from '../shared/messages/build.ts';
import type { EventData, ExtensionEventData, Messages } from '../shared/messages/message.ts';
import type { Condition, Write } from '../shared/store/store.ts';
import { traceContext } from '../shared/telemetry.ts';
import { eventRoute } from '../shared/transport/topology.ts';
import type { Host } from './host.ts';
import type { OutboxEntry } from './outbox.ts';

type EventOf<Data> = { readonly [Type in keyof Data]: { readonly event: Type; readonly data: Data[Type] } }[keyof Data];

/** An answer to a command of an extension. */
export type ExtensionSaying = EventOf<ExtensionEventData>;

/** Something a session has to say, before it has its place in the log. */
export type Saying =
  | EventOf<EventData>
  | ExtensionSaying
  | {
      readonly [Type in 'task_accepted' | 'task_rejected' | 'task_completed' | 'task_failed']: {
        readonly type: Type;
        readonly payload: Messages[Type]['payload'];
      };
    }['task_accepted' | 'task_rejected' | 'task_completed' | 'task_failed'];

/** One atomic step of a session. */
export interface Step {
  readonly sayings: readonly Saying[];
  /** The record after it; `undefined` when nothing but the log grows. */
  readonly record?: SessionRecord;
  /** From whom the session is taken with it. */
  readonly takenFrom?: { readonly owner: string; readonly epoch: number };
  readonly writes?: (built: readonly BuiltMessage[]) => readonly Write[];
  /** What goes on record with it. */
  readonly audit?: readonly AuditDraft[];
}

/**
 * A session's record and log. What is said gets its place in memory, at once and in call order; then it is committed, and
 * only then published. The first commit that meets another owner's ends it: nothing is written after that.
 */
export class SessionWriter {
  readonly #host: Host;
  readonly #fence: Fence = { broken: false };
  readonly #trace: Context;
  readonly #onLost: () => void;
  /** What an earlier life said, until the first commit of this one. */
  readonly #unpublished: OutboxEntry[] = [];
  #record: SessionRecord;
  #tail: LogTail;

  constructor(host: Host, record: SessionRecord, tail: LogTail, onLost: () => void) {
    this.#host = host;
    this.#record = record;
    this.#tail = tail;
    this.#trace = traceContext(JSON.parse(record.trace));
    this.#onLost = onLost;
    host.outbox.open(record, record.publishedThrough);
  }

  get record(): SessionRecord {
    return this.#record;
  }

  /** The sequence of the last event. */
  get sequence(): number {
    return this.#tail.sequence;
  }

  /** Whether another instance has the session. */
  get isLost(): boolean {
    return this.#fence.broken;
  }

  /** The record in another state. */
  in(state: SessionState): SessionRecord {
    const now = this.#host.clock.now();
    const wasKept = this.#record.state === 'PAUSED' && this.#record.pausedBy === 'caller';
    const pausedBy = isTerminal(state) || wasKept ? undefined : this.#record.pausedBy;
    return { ...this.#record, state, pausedBy, updatedAt: now, ...(isTerminal(state) && { closedAt: now }) };
  }

  /**
   * Resolves when the step is durable. Everything is built, and refused if it is invalid, before a sequence is spent
   * (V-88). Rejects with `session_taken_over` when the session is no longer ours.
   */
  async commit({ sayings, record, takenFrom, writes, audit = [] }: Step): Promise<void> {
    if (this.isLost) throw takenOver();
    const { entries, messages, tail } = this.#draft(sayings, takenFrom !== undefined);
    const patch = record === undefined ? [] : [this.#patch(record, takenFrom)];
    const more = writes?.(messages.filter((message) => message !== undefined)) ?? [];
    this.#tail = tail;
    this.#record = record ?? this.#record;
    const closed = isTerminal(this.#record.state);
    try {
      const commit = { fence: this.#fence, entries, writes: [...patch, ...more], audit };
      if ((await this.#host.committer.commit(commit)) === 'conflict') throw takenOver();
    } catch (error) {
      // Also when the store refused for good: what this object believes is no longer what is stored.
      this.lose();
      throw error;
    }
    const outgoing = entries.map((entry, index) => this.#outgoing(entry, messages[index]));
    this.#host.outbox.add(this.#record.sessionId, [...this.#unpublished.splice(0), ...outgoing], { closed });
    this.#host.telemetry.said(messages.length);
  }

  /**
   * Publishes again what an earlier life may not have got through. Not before the session is ours: until then the outbox
   * would take it for lost when it tells the store how far it got.
   */
  async republish(): Promise<void> {
    const { sessionId, calleeId, publishedThrough } = this.#record;
    const upTo = this.#tail.position;
    for await (const entry of readLog(this.#host.store, sessionId, publishedThrough + 1)) {
      if (entry.position > upTo) break;
      const { body } = entry;
      this.#unpublished.push(this.#outgoing(entry, body && this.inTrace(() => restoreMessage(body, calleeId))));
    }
  }

  lose(): void {
    this.#fence.broken = true;
    this.#host.outbox.drop(this.#record.sessionId);
    this.#onLost();
  }

  inTrace<T>(work: () => T): T {
    return context.with(this.#trace, work);
  }

  #draft(sayings: readonly Saying[], takeover: boolean) {
    const { sessionId } = this.#record;
    const now = this.#host.clock.now();
    const entries: LogEntry[] = [];
    const messages: (BuiltMessage | undefined)[] = [];
    let tail = this.#tail;
    const add = (entry: LogEntry, message?: BuiltMessage) => {
      entries.push(entry);
      messages.push(message);
      tail = tailAfter(tail, entry);
    };
    if (takeover) add(takeoverEntry(sessionId, tail, now));
    for (const saying of sayings) {
      const message = this.inTrace(() => this.#build(saying, tail.sequence + 1));
      add(messageEntry(sessionId, tail, message, now), message);
    }
    return { entries, messages, tail };
  }

  #build(saying: Saying, sequence: number): BuiltMessage {
    const { clock, settings } = this.#host;
    const { sessionId, calleeId, extensions } = this.#record;
    const options = { clock, limits: settings.limits };
    const common = { senderId: calleeId, sessionId };
    if ('event' in saying) {
      const payload = { event_type: saying.event, sequence, data: { ...saying.data } };
      return buildMessage({ ...common, type: 'event', payload }, options);
    }
    if (saying.type === 'task_rejected') {
      // With approval/1 the caller knows the session already.
      return buildMessage({ ...common, ...saying, sessionId: sequence > 1 ? sessionId : null }, options);
    }
    if (saying.type === 'task_accepted' || !extensions.includes('stream/1')) {
      return buildMessage({ ...common, ...saying }, options);
    }
    const told = { ...saying.payload.extensions, 'stream/1': { last_sequence: sequence - 1 } };
    // Of either result, with one more field that both have.
    const result = { ...saying, payload: { ...saying.payload, extensions: told } } as typeof saying;
    return buildMessage({ ...common, ...result }, options);
  }

  #patch(after: SessionRecord, takenFrom: Step['takenFrom']): Write {
    const { sessionId, owner, epoch } = after;
    const condition: Condition = takenFrom ?? { epoch };
    const set = { ...changes(this.#record, after), ...(takenFrom && { owner, epoch }) };
    const fence = { key: [sessionId], if: condition };
    // A question to a human may change nothing, but it must still be ours to ask.
    return Object.keys(set).length > 0 ? { patch: 'sessions', set, ...fence } : { check: 'sessions', ...fence };
  }

  #outgoing({ position }: LogEntry, built: BuiltMessage | undefined): OutboxEntry {
    if (built === undefined) return { position, message: undefined };
    const { message, body, properties } = built;
    const route = eventRoute(this.#record.callerId, message.session_id, message.type);
    return { position, message: { route, body, properties } };
  }
}

export function takenOver(): HcpError<'session_taken_over'> {
  return new HcpError('session_taken_over', 'Another instance of this callee has the session now');
}
