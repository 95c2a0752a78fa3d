import { randomBytes, randomUUID } from 'node:crypto';
import type { EventMessage, TaskAcceptedPayload } from '../../schemas/types.ts';
import { type BuiltMessage, buildMessage } from '../../shared/messages/build.ts';
import { commandQueue, eventRoute } from '../../shared/transport/topology.ts';
import type { MessageProperties, Transport } from '../../shared/transport/transport.ts';
import { wireProperties } from './messages.ts';
import { Recorder } from './recorder.ts';

/** What an event says, where it matters. */
export interface EventDraft {
  readonly type?: string;
  readonly data?: Record<string, unknown>;
}

/** A command as it came. */
export interface Command {
  readonly type: string;
  readonly messageId: string;
  readonly sessionId: string | null;
  readonly body: string;
}

const PROGRESS = { stage: 'working', message: 'On it' };

/** A callee by hand: it accepts whatever is submitted, and says what the test says, in any order, as often as told. */
export class FakeCallee {
  readonly calleeId = `fake-${randomBytes(4).toString('hex')}`;
  readonly callerId: string;
  readonly commands = new Recorder<Command>();
  readonly #transport: Transport;
  readonly #built = new Map<string, BuiltMessage<'event'>>();

  private constructor(transport: Transport, callerId: string) {
    this.#transport = transport;
    this.callerId = callerId;
  }

  static async listen(
    transport: Transport,
    callerId: string,
    accepted: Partial<TaskAcceptedPayload> = {},
  ): Promise<FakeCallee> {
    const callee = new FakeCallee(transport, callerId);
    await transport.consume(commandQueue(callee.calleeId), async (delivery) => {
      const body = Buffer.from(delivery.body).toString();
      const { type, message_id: messageId, session_id: sessionId } = JSON.parse(body);
      if (type === 'task_submit') await callee.accept(messageId, accepted);
      delivery.ack();
      callee.commands.add({ type, messageId, sessionId, body });
    });
    return callee;
  }

  async accept(messageId: string, more: Partial<TaskAcceptedPayload> = {}, sessionId = randomUUID()): Promise<string> {
    const payload: TaskAcceptedPayload = {
      session_token: 'token',
      risk_level: 'R1',
      data_classification: 'T2',
      safety_envelope: {},
      constraints: { max_duration: 'PT4H', abort_timeout: 'PT5M' },
      in_reply_to: messageId,
      ...more,
    };
    await this.publish(buildMessage({ type: 'task_accepted', sessionId, senderId: this.calleeId, payload }));
    return sessionId;
  }

  /** The same bytes each time it is told of this number. */
  async event(sessionId: string, sequence: number, draft: EventDraft = {}): Promise<void> {
    const key = `${sessionId} ${sequence}`;
    const built = this.#built.get(key) ?? this.build(sessionId, sequence, draft);
    this.#built.set(key, built);
    await this.publish(built);
  }

  async events(sessionId: string, ...sequences: readonly number[]): Promise<void> {
    for (const sequence of sequences) await this.event(sessionId, sequence);
  }

  state(sessionId: string, sequence: number, from: string, to: string, reason: string): Promise<void> {
    const data = { from_state: from, to_state: to, reason };
    return this.event(sessionId, sequence, { type: 'state_changed', data });
  }

  closed(sessionId: string, sequence: number, finalState = 'COMPLETED', reason = 'task_completed'): Promise<void> {
    return this.event(sessionId, sequence, { type: 'session_closed', data: { final_state: finalState, reason } });
  }

  async completed(sessionId: string, outputs: Record<string, unknown> = {}): Promise<void> {
    const payload = {
      outputs,
      execution_summary: { duration: 'PT1S', checkpoints_created: 0, warnings: [] },
    };
    await this.publish(buildMessage({ type: 'task_completed', sessionId, senderId: this.calleeId, payload }));
  }

  build(
    sessionId: string,
    sequence: number,
    { type = 'progress', data = PROGRESS }: EventDraft = {},
  ): BuiltMessage<'event'> {
    // The schema check is in buildMessage.
    const payload = { event_type: type, sequence, data } as EventMessage['payload'];
    return buildMessage({ type: 'event', sessionId, senderId: this.calleeId, payload });
  }

  /** An event with other fields than a callee of ours would send. */
  async odd(sessionId: string, payload: object, envelope: object = {}): Promise<void> {
    const { message } = this.build(sessionId, 1);
    const body = { ...message, ...envelope, payload: { ...message.payload, ...payload } };
    await this.raw(sessionId, Buffer.from(JSON.stringify(body)));
  }

  /** Any bytes at all. */
  async raw(sessionId: string, body: Uint8Array, properties: Partial<MessageProperties> = {}): Promise<void> {
    const route = eventRoute(this.callerId, sessionId, 'event');
    const outgoing = { route, body, properties: wireProperties({ appId: this.calleeId, ...properties }) };
    await this.#confirmed(this.#transport.publish(outgoing));
  }

  async publish({ message, body, properties }: BuiltMessage): Promise<void> {
    const route = eventRoute(this.callerId, message.session_id, message.type);
    await this.#confirmed(this.#transport.publish({ route, body, properties }));
  }

  async #confirmed(publishing: Promise<'confirmed' | 'unroutable'>): Promise<void> {
    const outcome = await publishing;
    if (outcome !== 'confirmed') throw new Error(`The message was ${outcome}`);
  }
}
