import type { BindingStep, QueueDeclaration, Route } from '../topology.ts';

/** A message as it lies in a queue. */
export interface QueuedMessage {
  readonly body: Uint8Array;
  /** As JSON: what goes in and what comes out are copies. */
  readonly properties: string;
  readonly route: Route;
}

/** One place in one queue. Ids grow, so their order is the queue's order, also for a message that came back. */
export interface Entry {
  readonly id: number;
  readonly queue: string;
  readonly attempts: number;
  readonly message: QueuedMessage;
}

/** What an embedded broker remembers. Only `rules.ts` decides what is done with it. */
export interface Rows {
  addConnection(id: string, expiresAt: number): void;
  /** Answers whether the connection exists. */
  renewConnection(id: string, expiresAt: number): boolean;
  hasConnection(id: string): boolean;
  expiredConnections(now: number): string[];
  removeConnection(id: string): void;

  queue(name: string): Omit<QueueDeclaration, 'bindings'> | undefined;
  addQueue(queue: QueueDeclaration): void;
  /** With its bindings, consumers and messages. What a hash exchange is bound to stays. */
  removeQueue(name: string): void;
  /** Having it already is fine. */
  addBinding(binding: BindingStep): void;
  removeBinding(binding: BindingStep): void;
  bindings(source: BindingStep['source']): readonly Omit<BindingStep, 'source'>[];

  /** Consumers have growing ids: the first one of a queue is the active one. */
  addConsumer(queue: string, connection: string): number;
  queueOf(consumer: number): string | undefined;
  firstConsumer(queue: string): number | undefined;
  consumersOf(connection: string): number[];
  removeConsumer(consumer: number): void;

  addMessage(queue: string, message: QueuedMessage, expiresAt: number | undefined): void;
  /** Waiting and held. */
  count(queue: string): number;
  /** Not held, oldest first. */
  waiting(queue: string, limit: number): Entry[];
  hasWaiting(queue: string): boolean;
  expiredMessages(queue: string, now: number): Entry[];
  hold(id: number, consumer: number): void;
  held(id: number, consumer: number): Entry | undefined;
  heldBy(consumer: number): Entry[];
  /** No longer held; one more attempt. */
  release(id: number): void;
  removeMessage(id: number): void;
}

/** A broker in this process or in a file of this machine. */
export interface Broker {
  /** How long a connection lives without being renewed; `undefined` where it cannot outlive its process. */
  readonly leaseMs: number | undefined;
  /** Runs `work` as one atomic and durable step, in call order. Rejects with `transport_lost` when that cannot be had. */
  transact<T>(work: (rows: Rows) => T): Promise<T>;
  /** Runs `work`, which only reads. Rejects as `transact` does. */
  look<T>(work: (rows: Rows) => T): Promise<T>;
  /** Calls `listener` after something changed, by whomever, until the returned function is called. */
  watch(listener: () => void): () => void;
  /** Lets go of what this side holds open. */
  close(): void;
}
