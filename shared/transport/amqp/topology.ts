import type { Channel, ChannelModel } from 'amqplib';
import { HcpError, isHcpError } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import { deadLetterQueue, EXCHANGES, type ExchangeName, type QueueDeclaration } from '../topology.ts';
import { channelEnd, closeChannel, type Refusal, refusalOf } from './channel.ts';
import { mismatch, type QueueType, queueArguments } from './topology-rules.ts';

const ACCESS_REFUSED = 403;
const NOT_FOUND = 404;

interface TopologyOptions {
  readonly queueType: QueueType;
  readonly logger: Logger;
}

/**
 * Makes the exchanges and queues, or finds out that an operator has made them: a login without the right to configure
 * is the recommended set-up, and then existing is all we can ask for.
 */
export class Topology {
  readonly #queueType: QueueType;
  readonly #logger: Logger;
  readonly #warned = new Set<string>();

  constructor({ queueType, logger }: TopologyOptions) {
    this.#queueType = queueType;
    this.#logger = logger;
  }

  /** What a publisher needs: publishing to an exchange that does not exist kills the channel. */
  async declareExchanges(connection: ChannelModel): Promise<void> {
    await using scratch = new Scratch(connection, this.#logger);
    await this.#exchange(scratch, 'hcp.commands');
    await this.#exchange(scratch, 'hcp.events');
    try {
      await this.#exchange(scratch, 'hcp.dead');
    } catch (error) {
      // Where the operator dead-letters by policy, this one need not exist.
      if (!isHcpError(error, 'topology_missing')) throw error;
      this.#warnOnce('hcp.dead', error.message);
    }
  }

  async declareQueue(connection: ChannelModel, queue: QueueDeclaration): Promise<void> {
    await using scratch = new Scratch(connection, this.#logger);
    await this.#exchange(scratch, 'hcp.commands');
    await this.#exchange(scratch, 'hcp.events');
    const origin = await this.#queue(scratch, queue);
    // An operator's queue has the operator's dead-lettering.
    if (queue.deadLetter && origin === 'ours') {
      await this.#exchange(scratch, 'hcp.dead');
      const dead = deadLetterQueue(queue);
      await this.#bind(scratch, dead, await this.#queue(scratch, dead));
    }
    await this.#bind(scratch, queue, origin);
  }

  async removeQueue(connection: ChannelModel, queue: QueueDeclaration): Promise<void> {
    await using scratch = new Scratch(connection, this.#logger);
    const refusal = await scratch.attempt((channel) => channel.deleteQueue(queue.name));
    if (refusal === undefined || refusal.code === NOT_FOUND) return;
    throw new HcpError('topology_forbidden', `Queue ${queue.name} cannot be deleted: ${refusal.text}`);
  }

  async #exchange(scratch: Scratch, name: ExchangeName): Promise<void> {
    const refusal = await scratch.attempt((channel) =>
      channel.assertExchange(name, EXCHANGES[name], { durable: true }),
    );
    if (refusal === undefined) return;
    if (refusal.code !== ACCESS_REFUSED) throw mismatch(`Exchange ${name}`, refusal);
    if (await scratch.attempt((channel) => channel.checkExchange(name))) throw missing(`Exchange ${name}`, refusal);
    this.#warnOnce(name, `Exchange ${name} is not ours to declare; it exists, its type is taken on trust`);
  }

  async #queue(scratch: Scratch, queue: QueueDeclaration): Promise<'ours' | 'operator'> {
    const subject = `Queue ${queue.name}`;
    const args = queueArguments(queue, this.#queueType);
    const refusal = await scratch.attempt((channel) =>
      channel.assertQueue(queue.name, { durable: true, arguments: args }),
    );
    if (refusal === undefined) return 'ours';
    if (refusal.code === NOT_FOUND) {
      // Declaring finds nothing only when the queue exists on a node that is down.
      throw new HcpError('topology_missing', `${subject} is out of reach: ${refusal.text}`, { retryable: true });
    }
    if (refusal.code !== ACCESS_REFUSED) throw mismatch(subject, refusal);
    if (await scratch.attempt((channel) => channel.checkQueue(queue.name))) throw missing(subject, refusal);
    this.#warnOnce(queue.name, `${subject} is not ours to declare; it exists, its settings are taken on trust`);
    return 'operator';
  }

  async #bind(scratch: Scratch, queue: QueueDeclaration, origin: 'ours' | 'operator'): Promise<void> {
    for (const { exchange, routingKey } of queue.bindings) {
      const refusal = await scratch.attempt((channel) => channel.bindQueue(queue.name, exchange, routingKey));
      if (refusal === undefined) continue;
      if (origin === 'ours' || refusal.code !== ACCESS_REFUSED) {
        const binding = `${exchange} with key ${routingKey}`;
        throw new HcpError('topology_forbidden', `Queue ${queue.name} cannot be bound to ${binding}: ${refusal.text}`);
      }
    }
  }

  #warnOnce(name: string, message: string): void {
    if (this.#warned.has(name)) return;
    this.#warned.add(name);
    this.#logger.warn({ name }, message);
  }
}

function missing(subject: string, refusal: Refusal): HcpError<'topology_missing'> {
  return new HcpError('topology_missing', `${subject} does not exist and is not ours to declare: ${refusal.text}`);
}

/** A channel to make mistakes on: the broker closes it at the first refusal, and the next attempt opens another. */
class Scratch implements AsyncDisposable {
  readonly #connection: ChannelModel;
  readonly #logger: Logger;
  #channel: Channel | undefined;

  constructor(connection: ChannelModel, logger: Logger) {
    this.#connection = connection;
    this.#logger = logger;
  }

  /** Returns the broker's refusal, if that is what happened; throws when the connection is gone. */
  async attempt(operation: (channel: Channel) => Promise<unknown>): Promise<Refusal | undefined> {
    try {
      await operation(await this.#open());
      return undefined;
    } catch (error) {
      this.#channel = undefined;
      const refusal = refusalOf(error);
      if (refusal === undefined) throw error;
      return refusal;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#channel !== undefined) await closeChannel(this.#channel);
  }

  async #open(): Promise<Channel> {
    if (this.#channel !== undefined) return this.#channel;
    const channel = await this.#connection.createChannel();
    void channelEnd(channel, this.#logger);
    this.#channel = channel;
    return channel;
  }
}
