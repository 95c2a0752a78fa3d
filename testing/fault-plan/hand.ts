import type { Delivery, DeliveryHandler } from '../../shared/transport/transport.ts';
import { wrapDelivery } from '../wrap-transport.ts';

type Settlement = 'ack' | 'retry' | 'reject';

/** A delivery on its way from the broker to a handler. */
export class Hand {
  readonly delivery: Delivery;
  /** Resolves when nobody works on it any more; rejects with what the handler threw. */
  readonly ended: Promise<void>;
  readonly #end = Promise.withResolvers<void>();
  readonly #onSettled: (hand: Hand) => void;
  #isHandedOver = false;
  #isSettled = false;

  constructor(delivery: Delivery, onSettled: (hand: Hand) => void) {
    this.delivery = delivery;
    this.ended = this.#end.promise;
    this.#onSettled = onSettled;
  }

  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  /** Calls the handler, and once more for each copy: the first call alone settles the delivery. */
  handOver(handler: DeliveryHandler, copies = 0): void {
    if (this.#isSettled) return;
    this.#isHandedOver = true;
    const calls = [
      call(
        handler,
        wrapDelivery(this.delivery, (how) => this.#settle(how)),
      ),
    ];
    for (let i = 0; i < copies; i++) {
      calls.push(
        call(
          handler,
          wrapDelivery(this.delivery, () => {}),
        ).catch(() => {}),
      );
    }
    Promise.all(calls).then(() => this.#end.resolve(), this.#end.reject);
  }

  /** To the broker, which delivers it again; whoever has it cannot settle it any more. */
  giveBack(): void {
    this.#settle('retry');
    if (!this.#isHandedOver) this.#end.resolve();
  }

  #settle(how: Settlement): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.delivery[how]();
    this.#onSettled(this);
  }
}

async function call(handler: DeliveryHandler, delivery: Delivery): Promise<void> {
  await handler(delivery);
}
