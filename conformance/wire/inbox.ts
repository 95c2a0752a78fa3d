import type { QueueDeclaration } from '../../shared/transport/topology.ts';
import type { Consumer, Transport } from '../../shared/transport/transport.ts';
import { type Heard, hear, tell } from './heard.ts';

export interface Wanted {
  /** What is waited for, for the sentence of a failure. */
  readonly what: string;
  readonly where?: (heard: Heard) => boolean;
  /** Whether the same bytes again count: at-least-once allows them at any time. @default false */
  readonly copies?: boolean;
}

/** What arrives in a queue, acked at once, to be taken in any order. */
export class Inbox {
  readonly #all: Heard[] = [];
  readonly #untaken = new Set<Heard>();
  readonly #copies = new Set<Heard>();
  readonly #first = new Map<string, Heard>();
  readonly #waiting = new Set<() => void>();

  listen(transport: Transport, queue: QueueDeclaration): Promise<Consumer> {
    return transport.consume(
      queue,
      (delivery) => {
        delivery.ack();
        this.#add(hear(delivery));
      },
      { prefetch: 100 },
    );
  }

  /** Everything so far, copies included. */
  get all(): readonly Heard[] {
    return this.#all;
  }

  /** What nobody has taken. */
  untaken({ where = () => true, copies = false }: Partial<Wanted> = {}): Heard[] {
    return [...this.#untaken].filter((heard) => where(heard) && (copies || !this.#copies.has(heard)));
  }

  /** The next one that is wanted. Fails when it does not come in time, or breaks its schema. */
  async take(wanted: Wanted, withinMs: number): Promise<Heard> {
    const timeUp = AbortSignal.timeout(withinMs);
    for (;;) {
      const broken = this.#all.find(({ fault }) => fault !== undefined);
      if (broken) throw new Error(`It sent an invalid message (${broken.type}): ${broken.fault}`);
      const [found] = this.untaken(wanted);
      if (found) {
        this.#untaken.delete(found);
        return found;
      }
      if (timeUp.aborted) {
        const heard = this.#all.map(tell).join(', ') || 'nothing';
        throw new Error(`Waited ${withinMs} ms for ${wanted.what}; heard ${heard.slice(-600)}`);
      }
      await this.#arrival(timeUp);
    }
  }

  #add(heard: Heard): void {
    const first = this.#first.get(heard.messageId);
    this.#first.set(heard.messageId, first ?? heard);
    const isReused = first !== undefined && first.text !== heard.text;
    const kept = isReused ? { ...heard, fault: heard.fault ?? `${REUSED} ${heard.messageId}` } : heard;
    if (first !== undefined && !isReused) this.#copies.add(kept);
    this.#all.push(kept);
    this.#untaken.add(kept);
    for (const wake of [...this.#waiting]) wake();
  }

  #arrival(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}

/** HCP-112. */
const REUSED = 'other content was sent before with the message_id';
