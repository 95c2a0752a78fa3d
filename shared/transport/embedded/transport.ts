import { randomUUID } from 'node:crypto';
import { backoffMs } from '../../backoff.ts';
import { delay } from '../../clock.ts';
import { HcpError, isHcpError } from '../../errors.ts';
import { integerOption, refuseUnknownOptions } from '../../option-checks.ts';
import { closedError, StatusBoard } from '../status-board.ts';
import type { QueueDeclaration } from '../topology.ts';
import type {
  ConsumeOptions,
  Consumer,
  DeliveryHandler,
  MessageProperties,
  OutgoingMessage,
  Transport,
  TransportStatus,
} from '../transport.ts';
import type { Broker, Entry, Rows } from './broker.ts';
import { type ConsumerHost, EmbeddedConsumer } from './consumer.ts';
import type { ResolvedEmbeddedOptions } from './options.ts';
import { Outbox } from './outbox.ts';
import {
  declareQueue,
  disconnect,
  mayTake,
  publish,
  removeConsumer,
  renew,
  retireQueue,
  type Settlement,
  settle,
  take,
} from './rules.ts';

type Lost = HcpError<'transport_lost'>;

interface Taken {
  readonly consumer: EmbeddedConsumer;
  readonly entries: Entry[] | 'gone';
}

const RETRY = { firstDelayMs: 20, maxDelayMs: 1000 };

/**
 * A transport over an embedded broker. Everything that is due goes to the broker together: publishes, settlements and
 * the wish for more are one atomic step, so under load many of them share one sync to the disk.
 */
export class EmbeddedTransport implements Transport {
  readonly login: string | undefined;
  readonly link = 'local';
  readonly #broker: Broker;
  readonly #options: ResolvedEmbeddedOptions;
  readonly #host: ConsumerHost;
  readonly #outbox = new Outbox();
  readonly #consumers = new Set<EmbeddedConsumer>();
  readonly #resubscribing = new Set<EmbeddedConsumer>();
  readonly #board: StatusBoard;
  readonly #closing = new AbortController();
  readonly #unwatch: () => void;
  #settlements: Settlement[] = [];
  /** Its name at the broker; a new one after each loss, so that nothing old can be settled. */
  #connection: string | undefined;
  #waiting: (() => void)[] = [];
  #noticed = false;
  #due = false;
  #working: Promise<void> | undefined;
  #leaseTimer: unknown;
  #closed: Promise<void> | undefined;

  constructor(broker: Broker, options: ResolvedEmbeddedOptions) {
    this.login = options.login;
    this.#broker = broker;
    this.#options = options;
    this.#board = new StatusBoard(options.logger);
    this.#host = {
      logger: options.logger,
      settle: (settlement) => {
        this.#settlements.push(settlement);
        this.#wake();
      },
      unsubscribe: (consumer) => this.#unsubscribe(consumer),
    };
    this.#unwatch = broker.watch(() => {
      this.#noticed = true;
      for (const consumer of this.#consumers) consumer.hungry = true;
      this.#wake();
    });
  }

  async open(): Promise<this> {
    await this.#connect(undefined);
    return this;
  }

  get status(): TransportStatus {
    return this.#board.status;
  }

  watch(listener: (status: TransportStatus) => void): () => void {
    return this.#board.watch(listener);
  }

  declare(queue: QueueDeclaration): Promise<void> {
    return this.#perform((rows) => declareQueue(rows, queue));
  }

  remove(queue: QueueDeclaration): Promise<void> {
    return this.#perform((rows) => rows.removeQueue(queue.name));
  }

  retire(queue: QueueDeclaration): Promise<'removed' | 'waiting' | 'absent'> {
    return this.#perform((rows) => retireQueue(rows, queue));
  }

  async publish(
    message: OutgoingMessage,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<'confirmed' | 'unroutable'> {
    if (this.#board.status === 'closed') throw closedError();
    signal?.throwIfAborted();
    const { route, body, properties } = message;
    const answer = this.#outbox.add({ route, body: body.slice(), properties: encode(properties, this.login) }, signal);
    this.#wake();
    return answer;
  }

  async consume(queue: QueueDeclaration, handler: DeliveryHandler, options: ConsumeOptions = {}): Promise<Consumer> {
    if (typeof handler !== 'function') throw new TypeError('handler must be a function');
    refuseUnknownOptions(options, ['prefetch', 'onInterrupted']);
    const prefetch = integerOption(options.prefetch, 'prefetch', { fallback: 10, min: 1, max: 65_535 });
    const consumer = new EmbeddedConsumer(this.#host, queue, handler, { ...options, prefetch });
    await this.#subscribe(consumer);
    this.#consumers.add(consumer);
    this.#wake();
    return consumer;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { clock, closeTimeoutMs } = this.#options;
    this.#closing.abort(closedError());
    const enough = new AbortController();
    // Consumers first: a running handler may still want to publish.
    const drained = Promise.all([...this.#consumers].map((consumer) => consumer.close())).then(() =>
      this.#outbox.emptied(),
    );
    await Promise.race([drained, delay(clock, closeTimeoutMs, enough.signal).catch(() => {})]);
    enough.abort();
    clock.clearTimeout(this.#leaseTimer);
    this.#unwatch();
    await this.#working;
    const connection = this.#connection;
    this.#connection = undefined;
    this.#board.show('closed');
    this.#outbox.failed(this.#outbox.next(Number.POSITIVE_INFINITY), closedError());
    if (connection !== undefined) {
      // Should this fail, the lease runs out instead.
      await this.#broker.transact((rows) => disconnect(rows, connection, clock.now())).catch(() => {});
    }
    this.#broker.close();
  }

  #wake(): void {
    this.#due = true;
    this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    // What is asked for in this turn of the event loop goes together.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#due && this.#connection !== undefined) {
      this.#due = false;
      await this.#round(this.#connection);
    }
    this.#working = undefined;
  }

  async #round(connection: string): Promise<void> {
    const { clock, window } = this.#options;
    const sent = this.#outbox.next(window);
    const settlements = this.#settlements;
    const hungry = [...this.#consumers].filter((consumer) => consumer.hungry);
    // Before the look and the step: what arrives during them makes hungry again.
    for (const consumer of hungry) consumer.hungry = false;
    try {
      if (sent.length === 0 && settlements.length === 0 && !(await this.#hasNews(connection, hungry))) return;
      this.#settlements = [];
      const answer = await this.#broker.transact((rows) => {
        if (!rows.hasConnection(connection)) return 'cut';
        const now = clock.now();
        for (const settlement of settlements) settle(rows, settlement, now);
        const outcomes = sent.map(({ message }) => publish(rows, message, now));
        return { outcomes, taken: serve(rows, hungry, now) };
      });
      if (answer === 'cut') return this.#lose(connection, lostError('its lease ran out or it was cut'));
      this.#outbox.answered(sent, answer.outcomes);
      this.#deliver(answer.taken);
      if (!this.#outbox.isEmpty) this.#due = true;
    } catch (error) {
      if (isHcpError(error, 'transport_lost')) return this.#lose(connection, error);
      this.#outbox.failed(sent, error);
      this.#lose(connection, lostError('it failed', error));
    }
  }

  /** A look before the step: most wake-ups are about somebody else's messages. */
  async #hasNews(connection: string, hungry: readonly EmbeddedConsumer[]): Promise<boolean> {
    if (hungry.length === 0 && !this.#noticed) return false;
    this.#noticed = false;
    return this.#broker.look(
      (rows) =>
        !rows.hasConnection(connection) ||
        hungry.some(({ subscription, room }) => subscription !== undefined && mayTake(rows, subscription, room)),
    );
  }

  #deliver(taken: readonly Taken[]): void {
    for (const { consumer, entries } of taken) {
      if (entries !== 'gone') {
        for (const entry of entries) consumer.deliver(entry);
        continue;
      }
      const { name } = consumer.queue;
      consumer.interrupted(new HcpError('queue_deleted', `Queue ${name} was deleted; what was in it is gone`));
      void this.#resubscribe(consumer);
    }
  }

  /** Does something at the broker, again when the link is lost meanwhile. */
  async #perform<T>(work: (rows: Rows, connection: string) => T): Promise<T> {
    for (;;) {
      this.#closing.signal.throwIfAborted();
      const connection = this.#connection;
      if (connection === undefined) {
        await this.#connected();
        continue;
      }
      try {
        return await this.#broker.transact((rows) => work(rows, connection));
      } catch (error) {
        if (!isHcpError(error, 'transport_lost')) throw error;
        this.#lose(connection, error);
      }
    }
  }

  #connected(): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => reject(this.#closing.signal.reason);
      this.#closing.signal.addEventListener('abort', stop, { once: true });
      this.#waiting.push(() => {
        this.#closing.signal.removeEventListener('abort', stop);
        resolve();
      });
    });
  }

  async #subscribe(consumer: EmbeddedConsumer): Promise<void> {
    const [id, under] = await this.#perform((rows, connection) => {
      declareQueue(rows, consumer.queue);
      return [rows.addConsumer(consumer.queue.name, connection), connection] as const;
    });
    // A connection that was lost meanwhile took the subscription with it.
    if (under === this.#connection) consumer.subscribed(id);
  }

  async #resubscribe(consumer: EmbeddedConsumer): Promise<void> {
    // Two subscriptions of one consumer would share its messages, and one of them has no reader.
    if (this.#resubscribing.has(consumer)) return;
    this.#resubscribing.add(consumer);
    for (let attempt = 0; !consumer.isClosing && consumer.subscription === undefined; attempt++) {
      try {
        await this.#subscribe(consumer);
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        this.#options.logger.error({ queue: consumer.queue.name, err: error, attempt }, 'Cannot consume yet');
        await delay(this.#options.clock, backoffMs(attempt, RETRY), this.#closing.signal).catch(() => {});
      }
    }
    this.#resubscribing.delete(consumer);
    this.#wake();
  }

  async #unsubscribe(consumer: EmbeddedConsumer): Promise<void> {
    const { subscription } = consumer;
    const connection = this.#connection;
    this.#consumers.delete(consumer);
    if (subscription === undefined || connection === undefined) return;
    const settlements = this.#settlements.filter((settlement) => settlement.consumer === subscription);
    this.#settlements = this.#settlements.filter((settlement) => settlement.consumer !== subscription);
    try {
      await this.#broker.transact((rows) => {
        const now = this.#options.clock.now();
        for (const settlement of settlements) settle(rows, settlement, now);
        removeConsumer(rows, subscription, now);
      });
    } catch (error) {
      // With the connection everything it held is given back.
      if (isHcpError(error, 'transport_lost')) this.#lose(connection, error);
      else this.#options.logger.error({ err: error }, 'A consumer could not be ended');
    }
  }

  #lose(connection: string, cause: Lost): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#settlements = [];
    this.#options.clock.clearTimeout(this.#leaseTimer);
    this.#options.logger.warn({ err: cause }, 'Lost the link to the embedded broker');
    for (const consumer of this.#consumers) consumer.interrupted(cause);
    this.#board.show('lost');
    void this.#reconnect(connection);
  }

  async #reconnect(old: string): Promise<void> {
    for (let attempt = 0; this.#board.status === 'lost'; attempt++) {
      try {
        await this.#connect(old);
      } catch (error) {
        if (!isHcpError(error, 'transport_lost')) this.#options.logger.error({ err: error }, 'Cannot reconnect');
        // Closing goes on waiting for it: publishes may be open.
        await delay(this.#options.clock, backoffMs(attempt, RETRY));
      }
    }
  }

  async #connect(old: string | undefined): Promise<void> {
    const { clock } = this.#options;
    const { leaseMs } = this.#broker;
    const connection = randomUUID();
    await this.#broker.transact((rows) => {
      if (old !== undefined) disconnect(rows, old, clock.now());
      rows.addConnection(connection, clock.now() + (leaseMs ?? Number.POSITIVE_INFINITY));
    });
    if (this.#board.status === 'closed') return;
    this.#connection = connection;
    if (leaseMs !== undefined) this.#keepLease(connection, leaseMs);
    this.#board.show('open');
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const proceed of waiting) proceed();
    for (const consumer of this.#consumers) void this.#resubscribe(consumer);
    this.#wake();
  }

  #keepLease(connection: string, leaseMs: number): void {
    const { clock } = this.#options;
    this.#leaseTimer = clock.setTimeout(async () => {
      try {
        const alive = await this.#broker.transact((rows) => renew(rows, connection, leaseMs, clock.now()));
        if (this.#connection !== connection) return;
        if (alive) this.#keepLease(connection, leaseMs);
        else this.#lose(connection, lostError('its lease ran out'));
      } catch (error) {
        const cause = isHcpError(error, 'transport_lost') ? error : lostError('its lease could not be renewed', error);
        this.#lose(connection, cause);
      }
    }, leaseMs / 3);
  }
}

function serve(rows: Rows, hungry: readonly EmbeddedConsumer[], now: number): Taken[] {
  return hungry.flatMap((consumer) => {
    const { subscription, room } = consumer;
    return subscription === undefined ? [] : [{ consumer, entries: take(rows, subscription, room, now) }];
  });
}

/** What AMQP would carry; the login is ours to say, not the sender's. */
function encode(properties: MessageProperties, login: string | undefined): string {
  const { messageId, timestamp, correlationId, contentType, contentEncoding, type, appId, headers } = properties;
  const carried = { messageId, timestamp, correlationId, contentType, contentEncoding, type, appId, headers };
  try {
    return JSON.stringify({ ...carried, userId: login });
  } catch (error) {
    throw new TypeError('A message property has a value that cannot be carried', { cause: error });
  }
}

function lostError(why: string, cause?: unknown): Lost {
  return new HcpError('transport_lost', `Lost the link to the embedded broker: ${why}`, { cause });
}
