import { type Channel, type ConsumeMessage, IllegalOperationError } from 'amqplib';
import type { ExchangeName, Route } from '../topology.ts';
import type { Delivery, ReceivedProperties } from '../transport.ts';
import { AckLedger } from './ack-ledger.ts';
import { received } from './properties.ts';
import type { QueueType } from './topology-rules.ts';

/**
 * Settles the deliveries of one channel. Tags mean nothing on another channel (a stale one acknowledges a stranger's
 * message there), so a settler dies with its channel and then does nothing.
 */
export class Settler {
  readonly #channel: Channel;
  readonly #ledger = new AckLedger();
  #over = false;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  get isOver(): boolean {
    return this.#over;
  }

  delivered(tag: number): void {
    this.#ledger.delivered(tag);
  }

  ack(tag: number): void {
    // All acks of this turn of the event loop go out together.
    if (!this.#over && this.#ledger.ack(tag)) setImmediate(() => this.flush());
  }

  /** By `basic.reject`: since RabbitMQ 4.3 a `basic.nack` does not count towards the delivery limit. */
  reject(tag: number, requeue: boolean): void {
    if (this.#over) return;
    this.#ledger.forget(tag);
    this.#tell(() => this.#channel.reject(addressed(tag), requeue));
  }

  flush(): void {
    if (this.#over) return;
    const { upTo, single } = this.#ledger.flush();
    this.#tell(() => {
      if (upTo !== undefined) this.#channel.ack(addressed(upTo), true);
      for (const tag of single) this.#channel.ack(addressed(tag), false);
    });
  }

  end(): void {
    this.#over = true;
  }

  /** A channel that is closing throws; those who end it tell us a moment later. */
  #tell(settle: () => void): void {
    try {
      settle();
    } catch (error) {
      if (!(error instanceof IllegalOperationError)) throw error;
      this.#over = true;
    }
  }
}

/** amqplib wants the message back, but reads only its tag. */
function addressed(deliveryTag: number): ConsumeMessage {
  return { fields: { deliveryTag } } as ConsumeMessage;
}

export class AmqpDelivery implements Delivery {
  readonly body: Uint8Array;
  readonly properties: ReceivedProperties;
  readonly route: Route;
  readonly redelivered: boolean;
  readonly attempts: number;
  readonly #settler: Settler;
  readonly #tag: number;
  #settled = false;

  constructor({ content, fields, properties }: ConsumeMessage, settler: Settler, queueType: QueueType) {
    this.body = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
    this.properties = received(properties);
    // Whoever may write to the queue chooses the exchange; the codec checks the route as it checks the rest.
    this.route = { exchange: fields.exchange as ExchangeName, routingKey: fields.routingKey };
    this.redelivered = fields.redelivered;
    this.attempts = attempts(fields.redelivered, properties.headers?.['x-delivery-count'], queueType);
    this.#settler = settler;
    this.#tag = fields.deliveryTag;
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  ack(): void {
    if (this.#settle()) this.#settler.ack(this.#tag);
  }

  retry(): void {
    if (this.#settle()) this.#settler.reject(this.#tag, true);
  }

  reject(): void {
    if (this.#settle()) this.#settler.reject(this.#tag, false);
  }

  /** The broker closes the channel over a tag settled twice. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    return true;
  }
}

/**
 * A sender can forge the count: RabbitMQ overwrites it only on a quorum queue, and there only from the second delivery
 * on. A classic queue knows no more than that it was handed out before.
 */
export function attempts(redelivered: boolean, count: unknown, queueType: QueueType): number {
  if (!redelivered) return 0;
  return queueType === 'quorum' && typeof count === 'number' ? count : 1;
}
