import { HcpError } from '../../shared/errors.ts';
import type { ConsumeOptions, Consumer, Delivery, DeliveryHandler } from '../../shared/transport/transport.ts';
import { Hand } from './hand.ts';
import { DELIVERY_FAULTS, type Fault, type FaultPlan } from './plan.ts';

/** Half of what a queue allows before it dead-letters: a plan loses nothing for good. */
const MOST_RETURNS = 10;
const MOST_OVERTAKEN_BY = 3;

type Cause = HcpError<'transport_lost' | 'queue_deleted'>;

interface Arrival {
  readonly hand: Hand;
  readonly fault: Fault | undefined;
  readonly share: number;
}

interface Held {
  readonly hand: Hand;
  /** How many are still to overtake it. */
  left: number;
  readonly timer: unknown;
}

/** Stands between a consumer of a real transport and its handler, and does what the plan says. */
export class FaultyConsumer implements Consumer {
  readonly #plan: FaultPlan;
  readonly #queue: string;
  readonly #handler: DeliveryHandler;
  readonly #onInterrupted: ConsumeOptions['onInterrupted'];
  /** Not settled yet. */
  readonly #inHand = new Set<Hand>();
  readonly #held = new Set<Held>();
  /** In the order they came; the first is delayed, the others are behind it. */
  #line: Arrival[] = [];
  #lineTimer: unknown;
  #inner: Consumer | undefined;

  constructor(
    plan: FaultPlan,
    queue: string,
    handler: DeliveryHandler,
    onInterrupted: ConsumeOptions['onInterrupted'],
  ) {
    this.#plan = plan;
    this.#queue = queue;
    this.#handler = handler;
    this.#onInterrupted = onInterrupted;
  }

  /** The consumer whose deliveries come to {@link receive}. */
  over(inner: Consumer): this {
    this.#inner = inner;
    return this;
  }

  receive(delivery: Delivery): Promise<void> {
    const hand = new Hand(delivery, () => this.#inHand.delete(hand));
    this.#inHand.add(hand);
    const { type = 'message', messageId = 'without id' } = delivery.properties;
    this.#line.push({
      hand,
      ...this.#plan.decide(this.#queue, `${type} ${messageId}`, DELIVERY_FAULTS, (fault) => this.#may(fault)),
    });
    if (this.#line.length === 1) this.#proceed();
    return hand.ended;
  }

  /** What the handler has not seen goes back to the broker. */
  async close(): Promise<void> {
    this.#giveBack([...this.#inHand].filter(({ isHandedOver }) => !isHandedOver));
    await this.#inner?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The link is gone, really or as far as the handler can see: what is in hand comes again. */
  interrupt(cause: Cause): void {
    this.#giveBack([...this.#inHand]);
    this.#onInterrupted?.(cause);
  }

  #may(fault: Fault): boolean {
    if (fault !== 'drop' && fault !== 'crash') return true;
    return [...this.#inHand].every(({ delivery }) => delivery.attempts < MOST_RETURNS);
  }

  #proceed(): void {
    const { clock, maxDelayMs } = this.#plan;
    for (let head = this.#line[0]; head; head = this.#line[0]) {
      if (head.fault === 'delay') {
        const passed = { ...head, fault: undefined };
        this.#lineTimer = clock.setTimeout(
          () => {
            this.#line[0] = passed;
            this.#proceed();
          },
          Math.ceil(head.share * maxDelayMs),
        );
        return;
      }
      this.#line.shift();
      this.#meet(head);
    }
  }

  #meet({ hand, fault, share }: Arrival): void {
    switch (fault) {
      case 'drop':
        this.#cut();
        break;
      case 'reorder':
        this.#hold(hand, 1 + Math.floor(share * MOST_OVERTAKEN_BY));
        break;
      case 'crash':
        this.#pass(hand);
        this.#cut();
        break;
      default:
        this.#pass(hand, fault === 'duplicate' ? 1 : 0);
    }
  }

  /** All in hand go back together: a lost link keeps the order of what it held. */
  #cut(): void {
    this.interrupt(new HcpError('transport_lost', 'The fault plan cut the link'));
  }

  #pass(hand: Hand, copies = 0): void {
    hand.handOver(this.#handler, copies);
    for (const held of [...this.#held]) if (--held.left === 0) this.#release(held);
  }

  #hold(hand: Hand, left: number): void {
    const { clock, maxDelayMs } = this.#plan;
    // Nobody may come to overtake it.
    const timer = clock.setTimeout(() => this.#release(held), maxDelayMs);
    const held: Held = { hand, left, timer };
    this.#held.add(held);
  }

  #release(held: Held): void {
    this.#plan.clock.clearTimeout(held.timer);
    if (this.#held.delete(held)) held.hand.handOver(this.#handler);
  }

  #giveBack(hands: readonly Hand[]): void {
    const { clock } = this.#plan;
    for (const held of this.#held) clock.clearTimeout(held.timer);
    this.#held.clear();
    clock.clearTimeout(this.#lineTimer);
    this.#line = [];
    for (const hand of hands) hand.giveBack();
  }
}
