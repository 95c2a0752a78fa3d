import { randomUUID } from 'node:crypto';
import type { ExtensionCommands, Messages } from '../../shared/messages/message.ts';
import { parseMessage } from '../../shared/messages/parse.ts';
import { commandQueue, eventRoute } from '../../shared/transport/topology.ts';
import type { Delivery, Transport } from '../../shared/transport/transport.ts';
import { within } from '../../testing/transport-contract/stage.ts';

type Submit = Messages['task_submit'];
type Commands = Pick<Messages, 'task_submit' | 'abort'> & ExtensionCommands;

export interface Saying {
  readonly messageId?: string;
  readonly headers?: Record<string, unknown>;
  /** `null`: says not who it is. */
  readonly appId?: string | null;
}

const WAIT_MS = 20_000;

/** A callee by hand: hears commands one by one, says anything. */
export class ScriptedCallee {
  readonly calleeId: string;
  readonly callerId: string;
  readonly #transport: Transport;
  readonly #arrived: Delivery[] = [];
  #wake: () => void = () => {};

  constructor(transport: Transport, calleeId: string, callerId: string) {
    this.#transport = transport;
    this.calleeId = calleeId;
    this.callerId = callerId;
  }

  /** It has a queue from now on. */
  async listen(): Promise<this> {
    await this.#transport.consume(commandQueue(this.calleeId), (delivery) => {
      delivery.ack();
      this.#arrived.push(delivery);
      this.#wake();
    });
    return this;
  }

  /** Has no queue any more. */
  vanish(): Promise<void> {
    return this.#transport.remove(commandQueue(this.calleeId));
  }

  get unheard(): number {
    return this.#arrived.length;
  }

  /** The next command, as it came. */
  async next(): Promise<Delivery> {
    for (;;) {
      const delivery = this.#arrived.shift();
      if (delivery) return delivery;
      const arrival = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await within(WAIT_MS, `the next command to ${this.calleeId}`, arrival);
    }
  }

  async command<Type extends keyof Commands>(type: Type): Promise<Commands[Type]> {
    const { body, properties } = await this.next();
    const parsed = parseMessage(body, properties);
    if (!parsed.ok) throw new Error(`The caller sent an invalid message: ${parsed.fault.message}`);
    if (parsed.message.type !== type) throw new Error(`Heard ${parsed.message.type} instead of ${type}`);
    return parsed.message as Commands[Type]; // just seen
  }

  async say(type: string, sessionId: string | null, payload: object, saying: Saying = {}): Promise<void> {
    const { messageId = randomUUID(), headers = {}, appId = this.calleeId } = saying;
    const timestamp = new Date().toISOString();
    const message = { hcp_version: '1.0', message_id: messageId, timestamp, session_id: sessionId, type, payload };
    const outcome = await this.#transport.publish({
      route: eventRoute(this.callerId, sessionId, type),
      body: Buffer.from(JSON.stringify(message)),
      properties: {
        ...{ messageId, contentType: 'application/json', contentEncoding: 'utf-8', type, headers },
        ...(appId !== null && { appId }),
        ...(sessionId !== null && { correlationId: sessionId }),
      },
    });
    if (outcome !== 'confirmed') throw new Error(`The ${type} was ${outcome}`);
  }

  /** Accepts a submit, or the next one, and answers the session's id. */
  async accept(
    submit?: Submit,
    { sessionId = randomUUID() as string, ...more }: { sessionId?: string; [field: string]: unknown } = {},
    saying?: Saying,
  ): Promise<string> {
    const { message_id } = submit ?? (await this.command('task_submit'));
    const payload = { session_token: `token of ${sessionId}`, risk_level: 'R1', in_reply_to: message_id, ...more };
    await this.say('task_accepted', sessionId, payload, saying);
    return sessionId;
  }

  async reject(submit: Submit | undefined, more: object = {}, saying: Saying & { sessionId?: string } = {}) {
    const { message_id } = submit ?? (await this.command('task_submit'));
    const payload = { reason_code: 'forbidden', reason_message: 'Not you', in_reply_to: message_id, ...more };
    await this.say('task_rejected', saying.sessionId ?? null, payload, saying);
  }

  /** Says that a human decides about a submit until then, and answers the id of the session to be. */
  async pend(
    { message_id }: Submit,
    expiresAt: number,
    { sessionId = randomUUID() as string, sequence = 1 }: { sessionId?: string; sequence?: number } = {},
  ): Promise<string> {
    await this.event(sessionId, sequence, 'x-approval-pending', {
      in_reply_to: message_id,
      expires_at: new Date(expiresAt).toISOString(),
      assessed_risk_level: 'R4',
    });
    return sessionId;
  }

  /** `progress` events with these numbers. */
  async report(sessionId: string, ...sequences: readonly number[]): Promise<void> {
    for (const sequence of sequences) {
      await this.event(sessionId, sequence, 'progress', { stage: 'test', message: `event ${sequence}` });
    }
  }

  event(sessionId: string, sequence: number, event_type: string, data: object): Promise<void> {
    return this.say('event', sessionId, { event_type, sequence, data });
  }

  move(sessionId: string, sequence: number, from_state: string, to_state: string): Promise<void> {
    return this.event(sessionId, sequence, 'state_changed', { from_state, to_state, reason: 'test' });
  }

  closed(sessionId: string, sequence: number, final_state: string): Promise<void> {
    return this.event(sessionId, sequence, 'session_closed', { final_state, reason: 'test' });
  }

  complete(sessionId: string, outputs: object = {}, more: object = {}, saying?: Saying): Promise<void> {
    return this.say('task_completed', sessionId, { outputs, ...more }, saying);
  }

  fail(sessionId: string, error_code: string, error_message: string, more: object = {}): Promise<void> {
    return this.say('task_failed', sessionId, { error_code, error_message, ...more });
  }
}
