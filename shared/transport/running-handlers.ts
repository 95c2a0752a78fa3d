import type { Delivery, DeliveryHandler } from './transport.ts';

/** The calls of a consumer's handler that have not ended. */
export class RunningHandlers {
  readonly #handler: DeliveryHandler;
  readonly #running = new Set<Promise<void>>();

  constructor(handler: DeliveryHandler) {
    this.#handler = handler;
  }

  /** Calls the handler at once; `failed` is told what it throws, now or later. */
  call<D extends Delivery>(delivery: D, failed: (delivery: D, error: unknown) => void): void {
    try {
      const running = this.#handler(delivery);
      if (running === undefined) return;
      const done = Promise.resolve(running)
        .catch((error: unknown) => failed(delivery, error))
        .finally(() => this.#running.delete(done));
      this.#running.add(done);
    } catch (error) {
      failed(delivery, error);
    }
  }

  /** Resolves when none is running. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
