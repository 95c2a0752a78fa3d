import type { Entry, QueuedMessage, Rows } from '../embedded/broker.ts';
import type { BindingStep, QueueDeclaration } from '../topology.ts';

interface Message extends Entry {
  attempts: number;
  readonly expiresAt: number;
  holder: number | undefined;
}

interface Queue {
  readonly declaration: QueueDeclaration;
  readonly consumers: Set<number>;
  /** Insertion order is the queue's order. */
  readonly messages: Map<number, Message>;
}

/** Rows in maps. `writes` counts the changes. */
export class MemoryRows implements Rows {
  writes = 0;
  #lastId = 0;
  readonly #connections = new Map<string, Set<number>>();
  readonly #queues = new Map<string, Queue>();
  /** By source. */
  readonly #bindings = new Map<string, BindingStep[]>();
  readonly #consumers = new Map<number, { readonly queue: string; readonly connection: string }>();
  readonly #queueOfMessage = new Map<number, Queue>();

  addConnection(id: string): void {
    this.writes++;
    this.#connections.set(id, new Set());
  }

  renewConnection(id: string): boolean {
    return this.hasConnection(id);
  }

  hasConnection(id: string): boolean {
    return this.#connections.has(id);
  }

  connections(): string[] {
    return [...this.#connections.keys()];
  }

  /** They end with their process, so none outlives its lease. */
  expiredConnections(): string[] {
    return [];
  }

  removeConnection(id: string): void {
    this.writes++;
    this.#connections.delete(id);
  }

  queue(name: string): QueueDeclaration | undefined {
    return this.#queues.get(name)?.declaration;
  }

  addQueue(declaration: QueueDeclaration): void {
    this.writes++;
    this.#queues.set(declaration.name, {
      declaration,
      consumers: new Set(),
      messages: new Map(),
    });
  }

  removeQueue(name: string): void {
    const queue = this.#queues.get(name);
    if (queue === undefined) return;
    this.writes++;
    for (const consumer of [...queue.consumers]) this.removeConsumer(consumer);
    for (const id of queue.messages.keys()) this.#queueOfMessage.delete(id);
    for (const [source, bindings] of this.#bindings) {
      this.#bindings.set(
        source,
        bindings.filter(({ destination }) => destination !== name),
      );
    }
    this.#queues.delete(name);
  }

  addBinding(binding: BindingStep): void {
    this.removeBinding(binding);
    this.#bindings.set(binding.source, [...this.bindings(binding.source), binding]);
  }

  removeBinding({ source, routingKey, destination }: BindingStep): void {
    this.writes++;
    this.#bindings.set(
      source,
      this.bindings(source).filter((other) => other.routingKey !== routingKey || other.destination !== destination),
    );
  }

  bindings(source: BindingStep['source']): readonly BindingStep[] {
    return this.#bindings.get(source) ?? [];
  }

  addConsumer(queue: string, connection: string): number {
    this.writes++;
    const id = ++this.#lastId;
    this.#consumers.set(id, { queue, connection });
    this.#connections.get(connection)?.add(id);
    this.#queues.get(queue)?.consumers.add(id);
    return id;
  }

  queueOf(consumer: number): string | undefined {
    return this.#consumers.get(consumer)?.queue;
  }

  firstConsumer(queue: string): number | undefined {
    const [first] = this.#queues.get(queue)?.consumers ?? [];
    return first;
  }

  consumersOf(connection: string): number[] {
    return [...(this.#connections.get(connection) ?? [])];
  }

  removeConsumer(consumer: number): void {
    const found = this.#consumers.get(consumer);
    if (found === undefined) return;
    this.writes++;
    this.#consumers.delete(consumer);
    this.#queues.get(found.queue)?.consumers.delete(consumer);
    this.#connections.get(found.connection)?.delete(consumer);
  }

  addMessage(name: string, message: QueuedMessage, expiresAt = Number.POSITIVE_INFINITY): void {
    const queue = this.#queues.get(name);
    if (queue === undefined) return;
    this.writes++;
    const id = ++this.#lastId;
    queue.messages.set(id, { id, queue: name, attempts: 0, message, expiresAt, holder: undefined });
    this.#queueOfMessage.set(id, queue);
  }

  count(queue: string): number {
    return this.#queues.get(queue)?.messages.size ?? 0;
  }

  waiting(queue: string, limit: number): Entry[] {
    const found: Entry[] = [];
    for (const message of this.#messages(queue)) {
      if (found.length >= limit) break;
      if (message.holder === undefined) found.push({ ...message });
    }
    return found;
  }

  hasWaiting(queue: string): boolean {
    return this.waiting(queue, 1).length > 0;
  }

  expiredMessages(queue: string, now: number): Entry[] {
    if (this.#queues.get(queue)?.declaration.messageTtlMs === undefined) return [];
    return [...this.#messages(queue)].filter(({ holder, expiresAt }) => holder === undefined && expiresAt <= now);
  }

  hold(id: number, consumer: number): void {
    this.#change(id, (message) => {
      message.holder = consumer;
    });
  }

  held(id: number, consumer: number): Entry | undefined {
    const message = this.#message(id);
    return message?.holder === consumer ? { ...message } : undefined;
  }

  heldBy(consumer: number): Entry[] {
    return [...this.#messages(this.queueOf(consumer) ?? '')].filter(({ holder }) => holder === consumer);
  }

  release(id: number): void {
    this.#change(id, (message) => {
      message.holder = undefined;
      message.attempts++;
    });
  }

  removeMessage(id: number): void {
    this.writes++;
    this.#queueOfMessage.get(id)?.messages.delete(id);
    this.#queueOfMessage.delete(id);
  }

  #messages(queue: string): Iterable<Message> {
    return this.#queues.get(queue)?.messages.values() ?? [];
  }

  #message(id: number): Message | undefined {
    return this.#queueOfMessage.get(id)?.messages.get(id);
  }

  #change(id: number, change: (message: Message) => void): void {
    const message = this.#message(id);
    if (message === undefined) return;
    this.writes++;
    change(message);
  }
}
