import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { HcpError } from '../../shared/errors.ts';
import {
  commandQueue,
  commandRoute,
  deadLetterQueue,
  eventQueue,
  eventRoute,
  type QueueDeclaration,
  type QueueOptions,
  sessionQueue,
} from '../../shared/transport/topology.ts';
import type {
  Consumer,
  Delivery,
  MessageProperties,
  OutgoingMessage,
  Transport,
  TransportStatus,
} from '../../shared/transport/transport.ts';
import type { Heal, TransportFaults, TransportHarness } from './harness.ts';

/** One promise of the contract and its proof. `timeLimitMs` is 60 s unless told. */
export interface Scenario {
  readonly name: string;
  readonly verifies?: readonly string[];
  readonly timeLimitMs?: number;
  play(stage: Stage): Promise<void>;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The body as text. */
export function text(delivery: Delivery): string {
  return decoder.decode(delivery.body);
}

export function texts(deliveries: readonly Delivery[]): string[] {
  return deliveries.map(text);
}

/** `['m1', 'm2', …]` */
export function series(count: number, prefix = 'm'): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);
}

/** The first appearance of each: what is left of an at-least-once stream when repeats are dropped. */
export function firstAppearances(items: readonly string[]): string[] {
  return [...new Set(items)];
}

/** Fails with a sentence instead of hanging. */
export async function within<T>(limitMs: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new assert.AssertionError({ message: `Waited ${limitMs} ms for ${what}` })),
      limitMs,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Values that come by themselves and are awaited one by one. */
class Arrivals<T> {
  readonly all: T[] = [];
  #taken = 0;
  #wake: (() => void) | undefined;

  add(item: T): void {
    this.all.push(item);
    this.#wake?.();
  }

  async next(limitMs: number, what: () => string): Promise<T> {
    while (this.#taken >= this.all.length) {
      const arrival = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await within(limitMs, what(), arrival);
    }
    // The loop ends only when there is one.
    return this.all[this.#taken++] as T;
  }

  get untaken(): number {
    return this.all.length - this.#taken;
  }
}

export interface InboxOptions {
  readonly prefetch?: number;
  /** `ack` settles each delivery on arrival, `hold` leaves that to the case. @default 'hold' */
  readonly settle?: 'ack' | 'hold';
}

/** A consumer whose deliveries are awaited in arrival order. */
export class Inbox {
  readonly #limitMs: number;
  readonly #queue: string;
  readonly #deliveries = new Arrivals<Delivery>();
  readonly #interruptions = new Arrivals<HcpError>();
  #consumer: Consumer | undefined;

  constructor(queue: string, limitMs: number) {
    this.#queue = queue;
    this.#limitMs = limitMs;
  }

  async start(
    transport: Transport,
    queue: QueueDeclaration,
    { prefetch, settle = 'hold' }: InboxOptions,
  ): Promise<this> {
    const handler = (delivery: Delivery) => {
      if (settle === 'ack') delivery.ack();
      this.#deliveries.add(delivery);
    };
    const onInterrupted = (cause: HcpError) => this.#interruptions.add(cause);
    const options = prefetch === undefined ? { onInterrupted } : { prefetch, onInterrupted };
    this.#consumer = await within(
      this.#limitMs,
      `consume of ${this.#queue}`,
      transport.consume(queue, handler, options),
    );
    return this;
  }

  next(): Promise<Delivery> {
    return this.#deliveries.next(
      this.#limitMs,
      () => `the next delivery of ${this.#queue}; so far: ${texts(this.#deliveries.all).slice(-20).join(' ')}`,
    );
  }

  async take(count: number): Promise<Delivery[]> {
    const taken: Delivery[] = [];
    while (taken.length < count) taken.push(await this.next());
    return taken;
  }

  /** Takes and acks one after another, so that `count` may exceed the prefetch. */
  async ack(count: number): Promise<string[]> {
    const acked: string[] = [];
    while (acked.length < count) {
      const delivery = await this.next();
      delivery.ack();
      acked.push(text(delivery));
    }
    return acked;
  }

  /** Waits until each of `expected` came at least once. */
  async takeAll(expected: readonly string[]): Promise<void> {
    const missing = new Set(expected);
    for (const delivery of this.#deliveries.all) missing.delete(text(delivery));
    while (missing.size > 0) missing.delete(text(await this.next()));
  }

  interruption(): Promise<HcpError> {
    return this.#interruptions.next(this.#limitMs, () => `an interruption of the consumer of ${this.#queue}`);
  }

  /** Everything so far, in arrival order. */
  get arrived(): readonly Delivery[] {
    return this.#deliveries.all;
  }

  /** Arrived, but not yet asked for. */
  get untaken(): number {
    return this.#deliveries.untaken;
  }

  async close(): Promise<void> {
    if (this.#consumer) await within(this.#limitMs, `close of the consumer of ${this.#queue}`, this.#consumer.close());
  }
}

/** The statuses a transport goes through from now on. */
export class StatusLog {
  readonly #changes = new Arrivals<TransportStatus>();
  readonly #limitMs: number;
  readonly stop: () => void;

  constructor(transport: Transport, limitMs: number) {
    this.#limitMs = limitMs;
    this.stop = transport.watch((status) => this.#changes.add(status));
  }

  /** Waits for the next change to `status`, passing over others. */
  async until(status: TransportStatus): Promise<void> {
    const what = () => `status ${status}; so far: ${this.#changes.all.join(' ')}`;
    while ((await this.#changes.next(this.#limitMs, what)) !== status);
  }

  get changes(): readonly TransportStatus[] {
    return this.#changes.all;
  }
}

/** One case's own ids, transports, queues and faults, all cleared away at its end. */
export class Stage implements AsyncDisposable {
  readonly harness: TransportHarness;
  readonly callerId = `contract-${randomBytes(6).toString('hex')}`;
  readonly calleeId = `contract-${randomBytes(6).toString('hex')}`;
  /** How long any single wait of this case may take. */
  readonly limitMs: number;
  readonly #transports: Transport[] = [];
  readonly #queues = new Map<string, QueueDeclaration>();
  readonly #heals = new Set<Heal>();

  constructor(harness: TransportHarness, timeLimitMs: number) {
    this.harness = harness;
    this.limitMs = timeLimitMs * 0.8;
  }

  async open(options?: { login?: string; window?: number }): Promise<Transport> {
    const transport = await within(this.limitMs, 'a transport to open', this.harness.open(options));
    this.#transports.push(transport);
    return transport;
  }

  commands(options?: QueueOptions): QueueDeclaration {
    return this.track(commandQueue(this.calleeId, options));
  }

  events(options?: QueueOptions): QueueDeclaration {
    return this.track(eventQueue(this.callerId, options));
  }

  session(sessionId: string, options?: QueueOptions): QueueDeclaration {
    return this.track(sessionQueue(this.callerId, sessionId, options));
  }

  /** Has the queue and its dead-letter queue removed at the end. */
  track(queue: QueueDeclaration): QueueDeclaration {
    this.#queues.set(queue.name, queue);
    return queue;
  }

  /** A message for {@link commands}. */
  command(body: string | Uint8Array, properties: MessageProperties = {}): OutgoingMessage {
    return { route: commandRoute(this.calleeId), body: bytes(body), properties };
  }

  /** A message for {@link events}. */
  event(body: string, sessionId: string | null = null, type = 'event', callerId = this.callerId): OutgoingMessage {
    return { route: eventRoute(callerId, sessionId, type), body: bytes(body), properties: {} };
  }

  /** Publishes commands without waiting in between and answers their outcomes. */
  publishAll(transport: Transport, bodies: readonly string[]): Promise<('confirmed' | 'unroutable')[]> {
    const outcomes = Promise.all(bodies.map((body) => transport.publish(this.command(body))));
    return within(this.limitMs, `${bodies.length} publishes to be confirmed`, outcomes);
  }

  /** Publishes commands and insists that the broker has them. */
  async send(transport: Transport, ...bodies: string[]): Promise<void> {
    const outcomes = await this.publishAll(transport, bodies);
    assert.deepEqual(
      outcomes.filter((outcome) => outcome !== 'confirmed'),
      [],
      'every publish is confirmed',
    );
  }

  consume(transport: Transport, queue: QueueDeclaration, options: InboxOptions = {}): Promise<Inbox> {
    return new Inbox(queue.name, this.limitMs).start(transport, queue, options);
  }

  /**
   * Three messages to a queue of its own and back. What the broker was going to send anyway has then had its chance
   * to arrive, which is how a case sees that nothing comes without waiting for a time.
   */
  async roundTrips(transport: Transport): Promise<void> {
    const calleeId = `contract-${randomBytes(6).toString('hex')}`;
    const inbox = await this.consume(transport, this.track(commandQueue(calleeId)), { settle: 'ack' });
    for (const body of series(3, 'echo')) {
      await this.within(
        'an echo',
        transport.publish({ route: commandRoute(calleeId), body: bytes(body), properties: {} }),
      );
      await inbox.next();
    }
    await inbox.close();
  }

  /** What waits in a queue, taken in order and acked, up to and including a mark published now. */
  async drain(transport: Transport, queue: QueueDeclaration = this.commands()): Promise<string[]> {
    const mark = `mark-${randomUUID()}`;
    await this.send(transport, mark);
    const inbox = await this.consume(transport, queue, { settle: 'ack' });
    const drained: string[] = [];
    for (let body = text(await inbox.next()); body !== mark; body = text(await inbox.next())) drained.push(body);
    await inbox.close();
    return drained;
  }

  statuses(transport: Transport): StatusLog {
    return new StatusLog(transport, this.limitMs);
  }

  within<T>(what: string, promise: Promise<T>): Promise<T> {
    return within(this.limitMs, what, promise);
  }

  cutLinks(): Promise<void> {
    return this.within('the links to be cut', this.harness.faults.cutLinks());
  }

  /** Starts a fault; it is healed at the end of the case at the latest. */
  async suffer(fault: keyof Pick<TransportFaults, 'freezeLinks' | 'slowLinks' | 'stopBroker'>): Promise<Heal> {
    const heal = await this.within(`${fault} to begin`, this.harness.faults[fault]());
    const once = async () => {
      if (this.#heals.delete(once)) await this.within(`${fault} to be healed`, heal());
    };
    this.#heals.add(once);
    return once;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const heal of this.#heals) await heal();
    await within(this.limitMs, 'the transports to close', Promise.all(this.#transports.map((open) => open.close())));
    await using janitor = await this.harness.open();
    for (const queue of this.#queues.values()) {
      await janitor.remove(queue);
      if (queue.deadLetter) await janitor.remove(deadLetterQueue(queue));
    }
  }
}

function bytes(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? encoder.encode(body) : body;
}
