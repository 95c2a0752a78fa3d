import type { Abort, TaskSubmit, XPause, XReplay, XResume, XStatus } from '../schemas/types.ts';
import { type Clock, systemClock } from '../shared/clock.ts';
import { type HarnessId, parseHarnessId } from '../shared/ids.ts';
import { type Logger, silentLogger } from '../shared/logger.ts';
import { type BuiltMessage, buildMessage } from '../shared/messages/build.ts';
import { type MessageLimits, resolveMessageLimits } from '../shared/messages/limits.ts';
import type { HcpMessage, Messages } from '../shared/messages/message.ts';
import type { RefusedMessage } from '../shared/messages/parse.ts';
import { readDelivery } from '../shared/messages/receive.ts';
import { isExtensionCommand } from '../shared/messages/validators.ts';
import { commandQueue, eventRoute, type QueueOptions } from '../shared/transport/topology.ts';
import type { Consumer, Delivery, Transport } from '../shared/transport/transport.ts';

export interface CommandChannelOptions {
  readonly calleeId: string;
  readonly transport: Transport;
  /** How the callee's own queue is declared. */
  readonly queue?: QueueOptions;
  /** @default 10 */
  readonly prefetch?: number;
  readonly limits?: Partial<MessageLimits>;
  readonly clock?: Clock;
  /** @default silent */
  readonly logger?: Logger;
  /** A submit that was no submit is being answered; awaited before it is. */
  readonly onRefused?: (callerId: string, rejection: Messages['task_rejected']['payload']) => Promise<void>;
}

/** What a caller can ask for; all but the first two by a negotiated extension. */
export type Command = TaskSubmit | Abort | XReplay | XStatus | XPause | XResume;

/** A valid command and what the broker knows of its sender. */
export interface ReceivedCommand {
  readonly message: Command;
  /** The message as it came. */
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The login the broker checked, if any. */
  readonly userId: string | undefined;
  /** What the sender calls itself. */
  readonly appId: string | undefined;
}

/** A callee's side of the wire: commands in, everything else out. */
export interface CommandChannel {
  readonly calleeId: HarnessId;
  /**
   * Hands each valid command to `handler`, which resolves once the outcome is durable: only then is it acked (HCP-101).
   * A handler that rejects gets the command again, up to the queue's delivery limit. Commands nobody could obey are
   * answered or dead-lettered here (D-27).
   */
  consume(handler: (command: ReceivedCommand) => Promise<void>): Promise<Consumer>;
  /** Publishes one of our messages to a caller. */
  publish(callerId: string, built: BuiltMessage): Promise<'confirmed' | 'unroutable'>;
}

/** Opens the command channel of one callee. Does no I/O before `consume` or `publish`. */
export function openCommandChannel(options: CommandChannelOptions): CommandChannel {
  const { transport, clock = systemClock, logger = silentLogger } = options;
  const calleeId = parseHarnessId(options.calleeId, 'calleeId');
  const queue = commandQueue(calleeId, options.queue);
  const limits = resolveMessageLimits(options.limits);

  return {
    calleeId,
    publish,
    consume: (handler) =>
      transport.consume(queue, (delivery) => receive(delivery, handler), { prefetch: options.prefetch ?? 10 }),
  };

  async function receive(delivery: Delivery, handler: (command: ReceivedCommand) => Promise<void>): Promise<void> {
    const outcome = readDelivery(delivery, { limits, logger });
    if (!outcome.ok) return refuse(delivery, outcome);
    const { message } = outcome;
    if (!isCommand(message)) {
      logger.error({ message_id: message.message_id, type: message.type }, 'Not a command: dead-lettered');
      return delivery.reject();
    }
    if (message.type === 'x-replay' && message.payload.from_sequence > message.payload.to_sequence) {
      const { message_id, session_id, type } = message;
      logger.error({ message_id, session_id, type }, 'A range that ends before it begins: dead-lettered');
      return delivery.reject();
    }
    const { userId, appId, headers = {} } = delivery.properties;
    await handler({ message, body: delivery.body, headers, userId, appId });
    delivery.ack();
  }

  /** A submit whose sender can be reached gets an answer; anything else can only be put aside (D-27). */
  async function refuse(delivery: Delivery, { fault, salvage }: RefusedMessage): Promise<void> {
    const callerId = salvage.callerId ?? salvage.appId;
    if (salvage.type !== 'task_submit' || callerId === undefined) return delivery.reject();
    const rejection = buildMessage(
      {
        type: 'task_rejected',
        sessionId: null,
        senderId: calleeId,
        payload: {
          reason_code: fault.code === 'unsupported_version' ? 'unsupported_version' : 'invalid_input',
          reason_message: fault.message,
          suggestion: fault.pointer
            ? `Correct ${fault.pointer} and submit again`
            : 'Correct the message and submit again',
          ...(salvage.messageId === undefined ? {} : { in_reply_to: salvage.messageId }),
        },
      },
      { clock, limits },
    );
    await options.onRefused?.(callerId, rejection.message.payload);
    await publish(callerId, rejection);
    delivery.ack();
  }

  async function publish(
    callerId: string,
    { message, body, properties }: BuiltMessage,
  ): Promise<'confirmed' | 'unroutable'> {
    const route = eventRoute(callerId, message.session_id, message.type);
    const outcome = await transport.publish({ route, body, properties });
    if (outcome === 'unroutable') {
      const { message_id, session_id, type } = message;
      logger.warn({ message_id, session_id, type, caller_id: callerId }, 'The caller has no queue: not delivered');
    }
    return outcome;
  }
}

/** Of an extension's commands only those with a schema: by that they have been checked. */
function isCommand(message: HcpMessage): message is Command {
  return message.type === 'task_submit' || message.type === 'abort' || isExtensionCommand(message.type);
}
