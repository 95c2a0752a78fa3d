import type { Options } from 'amqplib';

/** One publish that has no answer yet. */
export interface Pending {
  readonly exchange: string;
  readonly routingKey: string;
  readonly content: Buffer;
  readonly options: Options.Publish;
  /** Idempotent. */
  readonly resolve: (outcome: 'confirmed' | 'unroutable') => void;
  /** Idempotent. */
  readonly reject: (reason: unknown) => void;
  /** Its publisher no longer waits: not to be sent (again), but while in flight it still takes its place. */
  abandoned: boolean;
  /** The broker handed it back; its confirm follows. */
  returned: boolean;
  /** The exchange it names was missing once before. */
  orphaned: boolean;
}

interface Returned {
  readonly fields: { readonly exchange: string; readonly routingKey: string };
  readonly properties: { readonly messageId: unknown };
  readonly content: Buffer;
}

const COMPACT_AT = 1024;

/** The order of publishes: those waiting, and those in flight on the current channel by their delivery tag. */
export class PublishQueue {
  #waiting: Pending[] = [];
  #head = 0;
  #lastTag = 0;
  readonly #inFlight = new Map<number, Pending>();

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Whether anybody still waits for an answer. */
  get isAwaited(): boolean {
    const awaited = (pending: Pending) => !pending.abandoned;
    return [...this.#inFlight.values()].some(awaited) || this.#waiting.slice(this.#head).some(awaited);
  }

  add(pending: Pending): void {
    this.#waiting.push(pending);
  }

  /** The next to send. */
  take(): Pending | undefined {
    while (this.#head < this.#waiting.length) {
      const pending = this.#waiting[this.#head++];
      if (this.#head >= COMPACT_AT && this.#head * 2 >= this.#waiting.length) this.#compact();
      if (pending !== undefined && !pending.abandoned) return pending;
    }
    this.#compact();
    return undefined;
  }

  /** Undoes {@link take}. */
  putBack(pending: Pending): void {
    this.#compact();
    this.#waiting.unshift(pending);
  }

  /** It was sent: the channel numbers what it carries 1, 2, 3 … */
  sent(pending: Pending): void {
    this.#inFlight.set(++this.#lastTag, pending);
  }

  /** Takes out what the broker has answered. */
  answered(tag: number, multiple: boolean): Pending[] {
    if (!multiple) {
      const pending = this.#inFlight.get(tag);
      this.#inFlight.delete(tag);
      return pending === undefined ? [] : [pending];
    }
    const answered: Pending[] = [];
    for (const [sentTag, pending] of this.#inFlight) {
      if (sentTag > tag) break;
      this.#inFlight.delete(sentTag);
      answered.push(pending);
    }
    return answered;
  }

  /**
   * Notes a returned message. A return bears no tag, but returns keep the order of the publishes: it is the first one
   * in flight that looks like it.
   */
  returned({ fields, properties, content }: Returned): void {
    for (const pending of this.#inFlight.values()) {
      if (
        !pending.returned &&
        pending.options.messageId === properties.messageId &&
        pending.routingKey === fields.routingKey &&
        pending.exchange === fields.exchange &&
        pending.content.equals(content)
      ) {
        pending.returned = true;
        return;
      }
    }
  }

  /** The channel is gone: what was in flight goes first on the next one, in the same order. */
  rewind(): void {
    const again = [...this.#inFlight.values()].filter((pending) => !pending.abandoned);
    for (const pending of again) pending.returned = false;
    this.#waiting = again.concat(this.#waiting.slice(this.#head));
    this.#head = 0;
    this.#inFlight.clear();
    this.#lastTag = 0;
  }

  /** Everything without an answer, taken out. */
  drain(): Pending[] {
    this.rewind();
    const rest = this.#waiting;
    this.#waiting = [];
    return rest;
  }

  #compact(): void {
    this.#waiting = this.#waiting.slice(this.#head);
    this.#head = 0;
  }
}
