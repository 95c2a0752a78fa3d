import { HcpError } from '../../errors.ts';
import type { Broker, Rows } from '../embedded/broker.ts';
import { disconnect } from '../embedded/rules.ts';
import { MemoryRows } from './memory-rows.ts';

/**
 * A broker in this process: exchanges, durable queues, redelivery, dead letters. It can be taken away and brought back,
 * as a real one would be; what it confirmed stays.
 */
export class MemoryBroker implements Broker {
  readonly leaseMs = undefined;
  readonly #rows = new MemoryRows();
  readonly #listeners = new Set<() => void>();
  readonly #beforeStep: () => void | Promise<void>;
  #stopped = false;

  /** `beforeStep` is awaited before every step: a slow broker, or one whose steps a test orders. */
  constructor({ beforeStep = () => {} }: { readonly beforeStep?: () => void | Promise<void> } = {}) {
    this.#beforeStep = beforeStep;
  }

  async transact<T>(work: (rows: Rows) => T): Promise<T> {
    await this.#beforeStep();
    if (this.#stopped) throw new HcpError('transport_lost', 'The memory broker is stopped');
    return this.#step(work);
  }

  look<T>(work: (rows: Rows) => T): Promise<T> {
    return this.transact(work);
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    // Others may be connected, and what is in the queues stays.
  }

  /** Ends every connection; they come back by themselves. */
  cutLinks(): void {
    this.#step((rows) => {
      for (const connection of this.#rows.connections()) disconnect(rows, connection, Date.now());
    });
  }

  /** From now on nothing answers, until {@link start}. */
  stop(): void {
    this.cutLinks();
    this.#stopped = true;
  }

  start(): void {
    this.#stopped = false;
  }

  deleteQueue(name: string): void {
    this.#step((rows) => rows.removeQueue(name));
  }

  #step<T>(work: (rows: Rows) => T): T {
    const before = this.#rows.writes;
    try {
      return work(this.#rows);
    } finally {
      if (this.#rows.writes !== before) for (const listener of [...this.#listeners]) listener();
    }
  }
}
