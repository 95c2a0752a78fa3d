import { partitionQueue, type QueueDeclaration } from '../../shared/transport/topology.ts';
import type { Consumer, Delivery, OutgoingMessage, Transport } from '../../shared/transport/transport.ts';
import { type Stage, text } from './stage.ts';

interface Arrival {
  readonly queue: string;
  readonly body: string;
  readonly delivery: Delivery;
}

/** A partition of the case's caller. */
export function partition(stage: Stage, index: number, callerId = stage.callerId): QueueDeclaration {
  return stage.track(partitionQueue(callerId, index));
}

/** An event as a callee sends it: the session is in the routing key and in `correlationId`. */
export function sessionEvent(stage: Stage, body: string, sessionId: string | null, callerId?: string): OutgoingMessage {
  const type = sessionId === null ? 'task_rejected' : 'event';
  const properties = sessionId === null ? {} : { correlationId: sessionId };
  return { ...stage.event(body, sessionId, type, callerId), properties };
}

/** Publishes without waiting in between and answers the outcomes. */
export function sendEvents(stage: Stage, transport: Transport, messages: readonly OutgoingMessage[]) {
  const outcomes = Promise.all(messages.map((message) => transport.publish(message)));
  return stage.within(`${messages.length} events to be confirmed`, outcomes);
}

/** Consumers of several queues, whose deliveries are acked and noted together. */
export class Lanes {
  readonly arrivals: Arrival[] = [];
  readonly #stage: Stage;
  readonly #consumers = new Map<string, Consumer>();
  #wake: () => void = () => {};

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async open(transport: Transport, ...queues: QueueDeclaration[]): Promise<this> {
    for (const queue of queues) {
      const consumer = await transport.consume(queue, (delivery) => {
        delivery.ack();
        this.arrivals.push({ queue: queue.name, body: text(delivery), delivery });
        this.#wake();
      });
      this.#consumers.set(queue.name, consumer);
    }
    return this;
  }

  /** Waits for `count` deliveries in all, and for the chance of one too many. */
  async settled(transport: Transport, count: number): Promise<void> {
    const arrived = async () => {
      while (this.arrivals.length < count) await new Promise<void>((wake) => (this.#wake = wake));
    };
    await this.#stage.within(`${count} events in all partitions`, arrived());
    await this.#stage.roundTrips(transport);
  }

  get bodies(): string[] {
    return this.arrivals.map(({ body }) => body);
  }

  /** The queues in which something arrived that `belongs`. */
  usedBy(belongs: (arrival: Arrival) => boolean = () => true): string[] {
    return [...new Set(this.arrivals.filter(belongs).map(({ queue }) => queue))].toSorted();
  }

  async close(queue: QueueDeclaration): Promise<void> {
    await this.#consumers.get(queue.name)?.close();
  }
}
