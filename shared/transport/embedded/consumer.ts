import type { HcpError } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import { RunningHandlers } from '../running-handlers.ts';
import type { QueueDeclaration } from '../topology.ts';
import type { ConsumeOptions, Consumer, Delivery, DeliveryHandler, ReceivedProperties } from '../transport.ts';
import type { Entry } from './broker.ts';
import type { Settlement } from './rules.ts';

/** What a consumer needs of its transport. */
export interface ConsumerHost {
  readonly logger: Logger;
  settle(settlement: Settlement): void;
  /** Ends the subscription after what was settled under it. */
  unsubscribe(consumer: EmbeddedConsumer): Promise<void>;
}

/** Hands the messages of one queue to a handler, under one subscription after another. */
export class EmbeddedConsumer implements Consumer {
  readonly queue: QueueDeclaration;
  /** Its id at the broker; `undefined` while there is no link. */
  subscription: number | undefined;
  /** Whether something may be waiting for it. */
  hungry = false;
  readonly #host: ConsumerHost;
  readonly #handlers: RunningHandlers;
  readonly #prefetch: number;
  readonly #onInterrupted: ConsumeOptions['onInterrupted'];
  #unsettled = 0;
  #closed: Promise<void> | undefined;

  constructor(
    host: ConsumerHost,
    queue: QueueDeclaration,
    handler: DeliveryHandler,
    options: ConsumeOptions & { readonly prefetch: number },
  ) {
    this.#host = host;
    this.queue = queue;
    this.#handlers = new RunningHandlers(handler);
    this.#prefetch = options.prefetch;
    this.#onInterrupted = options.onInterrupted;
  }

  get isClosing(): boolean {
    return this.#closed !== undefined;
  }

  /** How many more deliveries it may hold. */
  get room(): number {
    return this.isClosing ? 0 : this.#prefetch - this.#unsettled;
  }

  subscribed(id: number): void {
    this.subscription = id;
    this.#unsettled = 0;
    this.hungry = true;
  }

  interrupted(cause: HcpError<'transport_lost' | 'queue_deleted'>): void {
    if (this.subscription === undefined) return;
    this.subscription = undefined;
    if (this.isClosing) return;
    try {
      this.#onInterrupted?.(cause);
    } catch (error) {
      this.#host.logger.error({ err: error }, 'onInterrupted threw');
    }
  }

  deliver(entry: Entry): void {
    const subscription = this.subscription;
    // What still comes while closing is given back at its end.
    if (subscription === undefined || this.isClosing) return;
    this.#unsettled++;
    const delivery = new EmbeddedDelivery(entry, (how) => {
      // A delivery belongs to its subscription: what is left of an older one has been given back.
      if (this.subscription !== subscription) return;
      this.#unsettled--;
      this.hungry = true;
      this.#host.settle({ id: entry.id, consumer: subscription, how });
    });
    this.#handlers.call(delivery, (failing, error) => this.#failed(failing, error));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#handlers.ended();
    await this.#host.unsubscribe(this);
    this.subscription = undefined;
  }

  #failed(delivery: EmbeddedDelivery, error: unknown): void {
    const { messageId } = delivery.properties;
    this.#host.logger.error({ queue: this.queue.name, messageId, err: error }, 'A delivery handler threw');
    delivery.retry();
  }
}

class EmbeddedDelivery implements Delivery {
  readonly body: Uint8Array;
  readonly properties: ReceivedProperties;
  readonly route: Delivery['route'];
  readonly attempts: number;
  #settle: ((how: Settlement['how']) => void) | undefined;

  constructor({ message, attempts }: Entry, settle: (how: Settlement['how']) => void) {
    this.body = message.body.slice();
    this.properties = JSON.parse(message.properties);
    this.route = message.route;
    this.attempts = attempts;
    this.#settle = settle;
  }

  get redelivered(): boolean {
    return this.attempts > 0;
  }

  ack(): void {
    this.#once('ack');
  }

  retry(): void {
    this.#once('retry');
  }

  reject(): void {
    this.#once('reject');
  }

  #once(how: Settlement['how']): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(how);
  }
}
