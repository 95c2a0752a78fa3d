import type { Channel, ConsumeMessage } from 'amqplib';
import { backoffMs } from '../../backoff.ts';
import { delay } from '../../clock.ts';
import { HcpError } from '../../errors.ts';
import { RunningHandlers } from '../running-handlers.ts';
import { closedError } from '../status-board.ts';
import type { QueueDeclaration } from '../topology.ts';
import type { Consumer, DeliveryHandler } from '../transport.ts';
import { channelEnd, closeChannel } from './channel.ts';
import { AmqpDelivery, Settler } from './delivery.ts';
import type { Generation, Link } from './link.ts';
import type { ResolvedAmqpOptions } from './options.ts';
import type { Topology } from './topology.ts';

type Interruption = HcpError<'transport_lost' | 'queue_deleted'>;

export interface ConsumerSettings {
  readonly queue: QueueDeclaration;
  readonly handler: DeliveryHandler;
  readonly prefetch: number;
  readonly onInterrupted: (cause: Interruption) => void;
}

/** Consuming on one channel, until it is interrupted. */
interface Subscription {
  readonly channel: Channel;
  readonly consumerTag: string;
  readonly settler: Settler;
  readonly interrupted: Promise<Interruption>;
  readonly since: number;
}

/** Consumes one queue, on one channel after another (HCP-010). */
export class AmqpConsumer implements Consumer {
  readonly #options: ResolvedAmqpOptions;
  readonly #link: Link;
  readonly #topology: Topology;
  readonly #settings: ConsumerSettings;
  readonly #onClosed: () => void;
  readonly #stopped = new AbortController();
  readonly #handlers: RunningHandlers;
  #subscription: Subscription | undefined;
  #supervision: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(
    options: ResolvedAmqpOptions,
    link: Link,
    topology: Topology,
    settings: ConsumerSettings,
    onClosed: () => void,
  ) {
    this.#options = options;
    this.#link = link;
    this.#topology = topology;
    this.#settings = settings;
    this.#handlers = new RunningHandlers(settings.handler);
    this.#onClosed = onClosed;
  }

  /** Declares the queue and starts. Rejects when that is refused; from then on the consumer repairs itself. */
  async start(): Promise<void> {
    const first = await this.#subscribe();
    this.#supervision = this.#supervise(first);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#stopped.abort(closedError());
    const subscription = this.#subscription;
    // The next active consumer starts at once when this one cancels, and would overtake what is still in our hands:
    // there the place is given up together with the deliveries, by closing the channel.
    if (!this.#settings.queue.singleActiveConsumer) {
      // A failure here means that the channel is gone, and with it all there was to give back.
      await subscription?.channel.cancel(subscription.consumerTag).catch(() => {});
    }
    await this.#handlers.ended();
    subscription?.settler.flush();
    subscription?.settler.end();
    if (subscription !== undefined) await closeChannel(subscription.channel);
    await this.#supervision;
    this.#onClosed();
  }

  #subscribe(): Promise<Subscription> {
    return this.#link.perform((generation) => this.#open(generation), this.#stopped.signal);
  }

  async #open(generation: Generation): Promise<Subscription> {
    const { connection, over } = generation;
    const { queue, prefetch } = this.#settings;
    await this.#topology.declareQueue(generation, queue);
    const channel = await connection.createChannel();
    const settler = new Settler(channel);
    const ended = channelEnd(channel, this.#options.logger);
    const { promise: interrupted, resolve: interrupt } = Promise.withResolvers<Interruption>();
    const stop = (cause: Interruption) => {
      settler.end();
      interrupt(cause);
    };
    over.addEventListener('abort', () => stop(over.reason), { once: true, signal: this.#stopped.signal });
    void ended.then((refusal) => {
      const why = refusal?.text ?? 'the channel was closed';
      stop(new HcpError('transport_lost', `The broker stopped the consumer of ${queue.name}: ${why}`));
    });
    await channel.prefetch(prefetch);
    const { consumerTag } = await channel.consume(
      queue.name,
      (message) => {
        if (message !== null) return this.#deliver(message, settler);
        stop(new HcpError('queue_deleted', `Queue ${queue.name} was deleted; what was in it is gone`));
        void closeChannel(channel);
      },
      { noAck: false, exclusive: false },
    );
    if (this.#stopped.signal.aborted) {
      await closeChannel(channel); // closed while we were opening
      throw this.#stopped.signal.reason;
    }
    this.#subscription = { channel, consumerTag, settler, interrupted, since: this.#options.clock.now() };
    return this.#subscription;
  }

  async #supervise(first: Subscription): Promise<void> {
    const { clock, reconnect, logger } = this.#options;
    let subscription = first;
    let failures = 0;
    try {
      for (;;) {
        const cause = await subscription.interrupted;
        this.#subscription = undefined;
        this.#stopped.signal.throwIfAborted();
        logger.warn({ queue: this.#settings.queue.name, err: cause }, 'Consuming was interrupted');
        this.#tellInterrupted(cause);
        // A link that comes back has waited already; what dies again at once must not spin.
        failures = clock.now() - subscription.since < reconnect.firstDelayMs ? failures + 1 : 0;
        if (failures > 0) await this.#pause(failures - 1);
        subscription = await this.#resubscribe();
      }
    } catch (error) {
      if (!this.#stopped.signal.aborted) throw error;
    }
  }

  async #resubscribe(): Promise<Subscription> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#subscribe();
      } catch (error) {
        this.#stopped.signal.throwIfAborted();
        this.#options.logger.error({ queue: this.#settings.queue.name, err: error, attempt }, 'Cannot consume yet');
        await this.#pause(attempt);
      }
    }
  }

  #pause(attempt: number): Promise<void> {
    const { clock, reconnect, random } = this.#options;
    return delay(clock, backoffMs(attempt, reconnect, random), this.#stopped.signal);
  }

  #deliver(message: ConsumeMessage, settler: Settler): void {
    // What still comes while closing goes back with the channel.
    if (this.#stopped.signal.aborted || settler.isOver) return;
    settler.delivered(message.fields.deliveryTag);
    const delivery = new AmqpDelivery(message, settler, this.#options.queueType);
    this.#handlers.call(delivery, (failing, error) => this.#handlerFailed(failing, error));
  }

  #handlerFailed(delivery: AmqpDelivery, error: unknown): void {
    const { queue } = this.#settings;
    const { messageId } = delivery.properties;
    this.#options.logger.error({ queue: queue.name, messageId, err: error }, 'A delivery handler threw');
    if (delivery.isSettled) return;
    // A classic queue does not count, so the limit it was asked for is reached at the first repetition (HCP-007).
    const uncounted = this.#options.queueType === 'classic' && queue.deliveryLimit !== undefined;
    if (uncounted && delivery.redelivered) delivery.reject();
    else delivery.retry();
  }

  #tellInterrupted(cause: Interruption): void {
    try {
      this.#settings.onInterrupted(cause);
    } catch (error) {
      this.#options.logger.error({ err: error }, 'onInterrupted threw');
    }
  }
}
