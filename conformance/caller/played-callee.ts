import { IN_REPLY_TO_HEADER } from '../../shared/messages/message.ts';
import { commandQueue, eventRoute } from '../../shared/transport/topology.ts';
import type { Consumer, Delivery, Transport } from '../../shared/transport/transport.ts';
import { type Changes, type RawMessage, rawMessage } from '../wire/raw.ts';

/** A command as the caller under test sent it. */
export interface HeardCommand {
  readonly delivery: Delivery;
  readonly text: string;
  readonly type: string;
  readonly message: Readonly<Record<string, unknown>>;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** How something is said otherwise than a good callee would. */
export type Saying = Pick<Changes, 'envelope' | 'properties'>;

/** A message as bytes: may be said again as it is. */
export interface Said extends RawMessage {
  readonly sessionId: string | null;
  readonly type: string;
}

/** The callee the kit plays: hears what the caller under test sends, and says anything. */
export class PlayedCallee implements AsyncDisposable {
  readonly calleeId: string;
  readonly callerId: string;
  readonly heard: HeardCommand[] = [];
  readonly #transport: Transport;
  #consumer: Consumer | undefined;

  constructor(transport: Transport, calleeId: string, callerId: string) {
    this.#transport = transport;
    this.calleeId = calleeId;
    this.callerId = callerId;
  }

  /** It has a queue from now on. */
  async listen(): Promise<this> {
    this.#consumer = await this.#transport.consume(commandQueue(this.calleeId), (delivery) => {
      delivery.ack();
      this.heard.push(read(delivery));
    });
    return this;
  }

  compose(type: string, sessionId: string | null, payload: Record<string, unknown>, saying?: Saying): Said {
    const raw = rawMessage({ type, sessionId, senderId: this.calleeId, payload, ...saying });
    return { ...raw, sessionId, type };
  }

  say(type: string, sessionId: string | null, payload: Record<string, unknown>, saying?: Saying): Promise<void> {
    return this.send(this.compose(type, sessionId, payload, saying));
  }

  async send({ sessionId, type, body, properties }: Said): Promise<void> {
    const route = eventRoute(this.callerId, sessionId, type);
    const outcome = await this.#transport.publish({ route, body, properties });
    if (outcome === 'unroutable') throw new Error(`There is no queue for what callees tell ${this.callerId}`);
  }

  async accept(sessionId: string, inReplyTo: unknown, more: object = {}, saying?: Saying): Promise<void> {
    const payload = {
      session_token: tokenOf(sessionId),
      risk_level: 'R1',
      data_classification: 'T2',
      safety_envelope: {},
      constraints: { max_duration: 'PT1H', abort_timeout: 'PT1M' },
      ...answerTo(inReplyTo),
      ...more,
    };
    await this.say('task_accepted', sessionId, payload, { ...headerFor(inReplyTo), ...saying });
  }

  async reject(inReplyTo: unknown, reasonCode: string, sessionId: string | null = null): Promise<void> {
    const payload = { reason_code: reasonCode, reason_message: 'Not this one', ...answerTo(inReplyTo) };
    await this.say('task_rejected', sessionId, payload, headerFor(inReplyTo));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#consumer?.close();
    await this.#transport.remove(commandQueue(this.calleeId));
  }
}

export function tokenOf(sessionId: string): string {
  return `conformance-token-${sessionId}`;
}

function answerTo(inReplyTo: unknown): object {
  return inReplyTo === undefined ? {} : { in_reply_to: inReplyTo };
}

function headerFor(inReplyTo: unknown): Saying {
  return inReplyTo === undefined ? {} : { properties: { headers: { [IN_REPLY_TO_HEADER]: inReplyTo } } };
}

/** Without any belief in it: what is wrong with it is for a check to say. */
function read(delivery: Delivery): HeardCommand {
  const text = Buffer.from(delivery.body).toString();
  const message = objectOf(() => JSON.parse(text));
  return { delivery, text, type: String(message.type), message, payload: objectOf(() => message.payload) };
}

function objectOf(find: () => unknown): Record<string, unknown> {
  try {
    const value = find();
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
