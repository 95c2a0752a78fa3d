import { isHcpError } from '../../errors.ts';
import { integerOption, refuseUnknownOptions } from '../../option-checks.ts';
import { closedError, StatusBoard } from '../status-board.ts';
import type { QueueDeclaration } from '../topology.ts';
import type {
  ConsumeOptions,
  Consumer,
  DeliveryHandler,
  OutgoingMessage,
  Transport,
  TransportStatus,
} from '../transport.ts';
import { AmqpConsumer } from './consumer.ts';
import { Link } from './link.ts';
import type { ResolvedAmqpOptions } from './options.ts';
import { Publisher } from './publisher.ts';
import { Topology } from './topology.ts';

const DEFAULT_PREFETCH = 10;
const MAX_PREFETCH = 65_535;
/** How long a polite goodbye may take once everything is settled. */
const GOODBYE_MS = 2000;

/**
 * Two connections: a broker short of memory stops reading from those that publish, and with them everything else on
 * the same connection. Declaring therefore goes with consuming.
 */
export class AmqpTransport implements Transport {
  readonly login: string | undefined;
  readonly link: 'local' | 'tls' | 'plain';
  readonly #options: ResolvedAmqpOptions;
  readonly #topology: Topology;
  readonly #publishLink: Link;
  readonly #consumeLink: Link;
  readonly #publisher: Publisher;
  readonly #consumers = new Set<AmqpConsumer>();
  readonly #declared = new Map<string, QueueDeclaration>();
  readonly #board: StatusBoard;
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;

  constructor(options: ResolvedAmqpOptions) {
    this.#options = options;
    this.#board = new StatusBoard(options.logger);
    this.login = options.login;
    this.link = options.link;
    this.#topology = new Topology(options);
    this.#publishLink = new Link(options, 'publish', () => this.#linkChanged());
    this.#consumeLink = new Link(options, 'consume', () => this.#linkChanged());
    this.#publisher = new Publisher(options, this.#publishLink, this.#topology, () => this.#restoreQueues());
  }

  async open(): Promise<void> {
    try {
      await this.#consumeLink.open();
      await this.#publishLink.open();
      await this.#publisher.start();
    } catch (error) {
      await this.close();
      throw error;
    }
    void this.#restoreAfterLosses();
  }

  get status(): TransportStatus {
    return this.#board.status;
  }

  watch(listener: (status: TransportStatus) => void): () => void {
    return this.#board.watch(listener);
  }

  async declare(queue: QueueDeclaration): Promise<void> {
    await this.#declare(queue);
    this.#declared.set(queue.name, queue);
  }

  async remove(queue: QueueDeclaration): Promise<void> {
    this.#declared.delete(queue.name);
    await this.#consumeLink.perform(
      ({ connection }) => this.#topology.removeQueue(connection, queue),
      this.#closing.signal,
    );
  }

  retire(queue: QueueDeclaration): Promise<'removed' | 'waiting' | 'absent'> {
    // First of all: a restored declaration would bind it again.
    this.#declared.delete(queue.name);
    return this.#consumeLink.perform(
      (generation) => this.#topology.retireQueue(generation, queue, this.#closing.signal),
      this.#closing.signal,
    );
  }

  publish(
    message: OutgoingMessage,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<'confirmed' | 'unroutable'> {
    return this.#publisher.publish(message, options.signal);
  }

  async consume(queue: QueueDeclaration, handler: DeliveryHandler, options: ConsumeOptions = {}): Promise<Consumer> {
    if (typeof handler !== 'function') throw new TypeError('handler must be a function');
    refuseUnknownOptions(options, ['prefetch', 'onInterrupted']);
    const prefetch = integerOption(options.prefetch, 'prefetch', {
      fallback: DEFAULT_PREFETCH,
      min: 1,
      max: MAX_PREFETCH,
    });
    this.#closing.signal.throwIfAborted();
    const settings = { queue, handler, prefetch, onInterrupted: options.onInterrupted ?? (() => {}) };
    const consumer = new AmqpConsumer(this.#options, this.#consumeLink, this.#topology, settings, () =>
      this.#consumers.delete(consumer),
    );
    this.#consumers.add(consumer);
    try {
      await consumer.start();
      return consumer;
    } catch (error) {
      this.#consumers.delete(consumer);
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#closing.abort(closedError());
    const { clock, closeTimeoutMs } = this.#options;
    const deadline = new AbortController();
    const timer = clock.setTimeout(() => deadline.abort(), closeTimeoutMs);
    const timeUp = new Promise<void>((resolve) => deadline.signal.addEventListener('abort', () => resolve()));
    // Consumers first: a running handler may still want to publish.
    await Promise.race([Promise.all([...this.#consumers].map((consumer) => consumer.close())), timeUp]);
    await this.#publisher.close(deadline.signal);
    await Promise.all([this.#publishLink.close(GOODBYE_MS), this.#consumeLink.close(GOODBYE_MS)]);
    clock.clearTimeout(timer);
    this.#linkChanged();
  }

  #declare(queue: QueueDeclaration): Promise<void> {
    return this.#consumeLink.perform(
      (generation) => this.#topology.declareQueue(generation, queue),
      this.#closing.signal,
    );
  }

  #linkChanged(): void {
    this.#publisher.linkChanged();
    this.#board.show(combine(this.#publishLink.status, this.#consumeLink.status));
  }

  /** A broker that lost its data has lost our queues too. Consumers declare theirs themselves. */
  async #restoreAfterLosses(): Promise<void> {
    const { signal } = this.#closing;
    try {
      for (;;) {
        const { over } = await this.#consumeLink.next(signal);
        await new Promise<void>((resolve) => over.addEventListener('abort', () => resolve(), { once: true }));
        await this.#restoreQueues();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #restoreQueues(): Promise<void> {
    for (const queue of this.#declared.values()) {
      try {
        await this.#declare(queue);
      } catch (error) {
        if (isHcpError(error, 'transport_closed')) return;
        this.#options.logger.error({ queue: queue.name, err: error }, 'A queue could not be declared again');
      }
    }
  }
}

function combine(publish: TransportStatus, consume: TransportStatus): TransportStatus {
  const both = [publish, consume];
  return (['closed', 'lost', 'blocked'] as const).find((status) => both.includes(status)) ?? 'open';
}
