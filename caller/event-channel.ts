import { type HarnessId, parseHarnessId } from '../shared/ids.ts';
import { type Logger, silentLogger } from '../shared/logger.ts';
import type { BuiltMessage } from '../shared/messages/build.ts';
import type { MessageFault, Salvage } from '../shared/messages/fault.ts';
import { type MessageLimits, resolveMessageLimits } from '../shared/messages/limits.ts';
import type { ExtensionCommands, Messages } from '../shared/messages/message.ts';
import { readDelivery } from '../shared/messages/receive.ts';
import { commandRoute, eventQueue, type QueueDeclaration, type QueueOptions } from '../shared/transport/topology.ts';
import type { Consumer, Delivery, Transport } from '../shared/transport/transport.ts';

export interface EventChannelOptions {
  readonly callerId: string;
  readonly transport: Transport;
  /** How the caller's own queue is declared. */
  readonly queue?: QueueOptions;
  /** @default 10 */
  readonly prefetch?: number;
  readonly limits?: Partial<MessageLimits>;
  /** Told of every message that was refused, before it is dead-lettered. */
  readonly onInvalid?: (fault: MessageFault, salvage: Salvage) => void | Promise<void>;
  /** @default silent */
  readonly logger?: Logger;
}

/** What a caller may send. */
type CommandType = 'task_submit' | 'abort' | keyof ExtensionCommands;

/** What a callee may send. */
export type CalleeMessage = Messages[Exclude<keyof Messages, 'task_submit' | 'abort'>];

export interface ReceivedEvent {
  readonly message: CalleeMessage;
  /** The message as it came. */
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The login the broker checked, if any. */
  readonly userId: string | undefined;
  /** What the sender calls itself: the callee. */
  readonly appId: string | undefined;
}

// biome-ignore lint/suspicious/noConfusingVoidType: most receivers have nothing to say.
export type Verdict = void | 'reject';
export type EventReceiver = (event: ReceivedEvent) => Promise<Verdict>;

/** A caller's side of the wire: commands out, everything callees say in. */
export interface EventChannel {
  readonly callerId: HarnessId;
  /**
   * Hands each valid message to `handler`, which resolves once it is fully processed: only then is it acked (HCP-208).
   * `reject` dead-letters it. A handler that rejects gets the message again, up to the queue's delivery limit.
   * `queue` is the caller's event queue unless told.
   */
  consume(handler: EventReceiver, queue?: QueueDeclaration): Promise<Consumer>;
  /** Publishes a command. `unroutable`: no such callee. */
  publish(
    calleeId: string,
    built: BuiltMessage<CommandType>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<'confirmed' | 'unroutable'>;
}

/** Opens the event channel of one caller. Does no I/O before `consume` or `publish`. */
export function openEventChannel(options: EventChannelOptions): EventChannel {
  const { transport, logger = silentLogger } = options;
  const callerId = parseHarnessId(options.callerId, 'callerId');
  const limits = resolveMessageLimits(options.limits);

  return {
    callerId,
    publish: (calleeId, { body, properties }, options) =>
      transport.publish({ route: commandRoute(calleeId), body, properties }, options),
    consume: (handler, queue = eventQueue(callerId, options.queue)) =>
      transport.consume(queue, (delivery) => receive(delivery, handler), { prefetch: options.prefetch ?? 10 }),
  };

  async function receive(delivery: Delivery, handler: EventReceiver): Promise<void> {
    // A CC header on the publish can bring another caller's message here; the routing key still tells whose it is.
    if (!delivery.route.routingKey.startsWith(`${callerId}.`)) {
      logger.error({ routing_key: delivery.route.routingKey }, 'Message for another caller: dead-lettered');
      return delivery.reject();
    }
    const outcome = readDelivery(delivery, { limits, logger });
    if (!outcome.ok) {
      await options.onInvalid?.(outcome.fault, outcome.salvage);
      // A type nobody knows may be a newer protocol's: harmless, so not worth a dead letter (V-117).
      return outcome.fault.code === 'unknown_type' ? delivery.ack() : delivery.reject();
    }
    const { message } = outcome;
    if (!isCalleeMessage(message)) {
      logger.error({ message_id: message.message_id, type: message.type }, 'Not from a callee: dead-lettered');
      return delivery.reject();
    }
    const { userId, appId, headers = {} } = delivery.properties;
    const verdict = await handler({ message, body: delivery.body, headers, userId, appId });
    if (verdict === 'reject') delivery.reject();
    else delivery.ack();
  }
}

function isCalleeMessage(message: { readonly type: string }): message is CalleeMessage {
  return message.type !== 'task_submit' && message.type !== 'abort' && !message.type.startsWith('x-');
}
