import { HcpError } from '../../errors.ts';
import type { QueuedMessage } from './broker.ts';
import type { PublishOutcome } from './rules.ts';

interface Pending {
  readonly message: QueuedMessage;
  answer(outcome: PublishOutcome): void;
  fail(reason: unknown): void;
}

/** The publishes without an answer, in call order. */
export class Outbox {
  readonly #pending: Pending[] = [];
  #whenEmpty: (() => void) | undefined;

  /** Resolves with the broker's answer. A publish whose signal fires is forgotten; it may have gone out. */
  add(message: QueuedMessage, signal: AbortSignal | undefined): Promise<'confirmed' | 'unroutable'> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        const index = this.#pending.indexOf(pending);
        if (index >= 0) this.#pending.splice(index, 1);
        pending.fail(signal?.reason);
        this.#tellIfEmpty();
      };
      const pending: Pending = {
        message,
        answer(outcome) {
          signal?.removeEventListener('abort', giveUp);
          if (outcome === 'refused') reject(refusal(message));
          else resolve(outcome);
        },
        fail(reason) {
          signal?.removeEventListener('abort', giveUp);
          reject(reason);
        },
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#pending.push(pending);
    });
  }

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  /** The next ones to send. They stay until they are answered. */
  next(limit: number): readonly Pending[] {
    return this.#pending.slice(0, limit);
  }

  answered(sent: readonly Pending[], outcomes: readonly PublishOutcome[]): void {
    for (const [index, pending] of sent.entries()) {
      // Absent when its publisher gave up meanwhile; the others stand in front, in their order.
      if (this.#pending[0] === pending) this.#pending.shift();
      const outcome = outcomes[index];
      if (outcome !== undefined) pending.answer(outcome);
    }
    this.#tellIfEmpty();
  }

  failed(sent: readonly Pending[], reason: unknown): void {
    for (const pending of sent) {
      if (this.#pending[0] === pending) this.#pending.shift();
      pending.fail(reason);
    }
    this.#tellIfEmpty();
  }

  /** Resolves when nothing waits any more. */
  emptied(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenEmpty = resolve;
      this.#tellIfEmpty();
    });
  }

  #tellIfEmpty(): void {
    if (this.isEmpty) this.#whenEmpty?.();
  }
}

function refusal({ route }: QueuedMessage): HcpError<'publish_refused'> {
  return new HcpError(
    'publish_refused',
    `A queue for messages to ${route.exchange} with key ${route.routingKey} is full`,
  );
}
