import type { HcpError } from '../errors.ts';
import type { QueueDeclaration, Route } from './topology.ts';

/** The AMQP properties HCP uses. A receiver must not trust one of them before the codec has looked. */
export interface MessageProperties {
  readonly messageId?: string;
  /** POSIX seconds. The envelope's own `timestamp` is the truth. */
  readonly timestamp?: number;
  readonly correlationId?: string;
  readonly contentType?: string;
  readonly contentEncoding?: string;
  readonly type?: string;
  readonly appId?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
}

/** A message as it leaves: the exact body, its properties, and where it goes. Always persistent, always mandatory. */
export interface OutgoingMessage {
  readonly route: Route;
  readonly body: Uint8Array;
  readonly properties: MessageProperties;
}

/** What a consumer gets. Hostile until the codec has parsed it. */
export interface ReceivedProperties extends MessageProperties {
  /** The sender's login, as the broker checked it; never what the sender claims. */
  readonly userId?: string;
}

/**
 * One message in a consumer's hands. It belongs to the connection it came on: once that is gone, settling it does
 * nothing (the broker delivers it again). Only the first of `ack`, `retry` and `reject` counts.
 */
export interface Delivery {
  readonly body: Uint8Array;
  readonly properties: ReceivedProperties;
  readonly route: Route;
  /** It may have been handed out before. A hint: never decide by it alone (HCP-218). */
  readonly redelivered: boolean;
  /** How many times it came back unsettled or retried, as far as the broker counts. */
  readonly attempts: number;
  /** Done: the broker forgets it. Never proof that it did: a lost link redelivers. */
  ack(): void;
  /** Back to its place at the head of the queue; counts towards the delivery limit. */
  retry(): void;
  /** Not for us, ever: to the dead-letter queue, if the queue has one. */
  reject(): void;
}

/**
 * Called in arrival order, without waiting for earlier calls to end; at most `prefetch` deliveries are unsettled.
 * A delivery left unsettled by a handler that threw is retried, and dead-lettered at the delivery limit.
 */
export type DeliveryHandler = (delivery: Delivery) => void | Promise<void>;

export interface ConsumeOptions {
  /** How many deliveries may be unsettled at once. @default 10 */
  readonly prefetch?: number;
  /** Told when the deliveries in hand became void: the link was lost, or the queue deleted. Consuming goes on by itself. */
  readonly onInterrupted?: (cause: HcpError<'transport_lost' | 'queue_deleted'>) => void;
}

export interface Consumer extends AsyncDisposable {
  /** Takes no more, waits for the running handlers, and gives back what they left unsettled. Idempotent. */
  close(): Promise<void>;
}

/** `blocked`: the broker accepts nothing for now. `lost`: no link; it comes back by itself. */
export type TransportStatus = 'open' | 'blocked' | 'lost' | 'closed';

/** A way to a broker. Survives the loss of its link: what was declared, consumed or not yet confirmed is restored. */
export interface Transport extends AsyncDisposable {
  /** The identity stamped as `userId` on everything published here. */
  readonly login: string | undefined;
  /** Who can read what passes: nobody off this machine (`local`), nobody on the way (`tls`), or anybody there (`plain`). */
  readonly link: 'local' | 'tls' | 'plain';
  readonly status: TransportStatus;
  /** Calls `listener` at each change of status until the returned function is called. */
  watch(listener: (status: TransportStatus) => void): () => void;
  /** Makes sure the queue, its bindings and its dead-letter queue exist. Rejects with `topology_mismatch` when it exists otherwise. */
  declare(queue: QueueDeclaration): Promise<void>;
  /** Deletes the queue and what is in it. Not existing is fine. Its dead-letter queue stays. */
  remove(queue: QueueDeclaration): Promise<void>;
  /**
   * Takes a queue out of use without losing what waits in it: undoes its bindings, so that nothing new arrives, and deletes
   * it once it is empty and nobody consumes it. `waiting`: not yet; consume the rest, as a queue with no bindings
   * (`{ ...queue, bindings: [] }`), close that consumer and retire again. May take as long as a confirm may, because of
   * messages that are still on their way into the queue. Its dead-letter queue stays.
   */
  retire(queue: QueueDeclaration): Promise<'removed' | 'waiting' | 'absent'>;
  /**
   * Resolves once the broker is responsible for the message (`confirmed`) or has no queue for it (`unroutable`).
   * Many may be in flight; they go out in call order, also across a lost link, where the unconfirmed are sent again.
   * Waits while the window is full. Rejects with `publish_refused` when the broker says no (a full queue), with
   * `transport_closed` when closed before the answer, and with the signal's reason: the outcome is then unknown.
   */
  publish(message: OutgoingMessage, options?: { readonly signal?: AbortSignal }): Promise<'confirmed' | 'unroutable'>;
  /** Declares the queue, then consumes it. */
  consume(queue: QueueDeclaration, handler: DeliveryHandler, options?: ConsumeOptions): Promise<Consumer>;
  /** Closes the consumers, waits for the confirms still open, then lets go. Idempotent. */
  close(): Promise<void>;
}
