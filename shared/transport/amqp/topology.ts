import type { ChannelModel } from 'amqplib';
import { delay } from '../../clock.ts';
import { HcpError, isHcpError } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import {
  type BindingStep,
  bindingSteps,
  deadLetterQueue,
  EXCHANGES,
  type ExchangeName,
  type HashExchangeName,
  isHashExchange,
  type QueueDeclaration,
} from '../topology.ts';
import { type Refusal, refusalOf } from './channel.ts';
import type { Generation } from './link.ts';
import type { ResolvedAmqpOptions } from './options.ts';
import { Scratch } from './scratch.ts';
import { HASH_EXCHANGE, mismatch, queueArguments, unsupportedType } from './topology-rules.ts';

const ACCESS_REFUSED = 403;
const NOT_FOUND = 404;

type TopologyOptions = Pick<ResolvedAmqpOptions, 'queueType' | 'logger' | 'clock' | 'confirmTimeoutMs'>;

/**
 * Makes the exchanges and queues, or finds out that an operator has made them: a login without the right to configure
 * is the recommended set-up, and then existing is all we can ask for.
 */
export class Topology {
  readonly #options: TopologyOptions;
  readonly #logger: Logger;
  readonly #warned = new Set<string>();

  constructor(options: TopologyOptions) {
    this.#options = options;
    this.#logger = options.logger;
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

  async declareQueue({ connection, over }: Generation, queue: QueueDeclaration): Promise<void> {
    await using scratch = new Scratch(connection, this.#logger);
    await this.#exchange(scratch, 'hcp.commands');
    await this.#exchange(scratch, 'hcp.events');
    for (const { exchange } of queue.bindings) {
      if (isHashExchange(exchange)) await this.#hashExchange(scratch, exchange, over);
    }
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

  async retireQueue(
    { connection, over }: Generation,
    queue: QueueDeclaration,
    signal: AbortSignal,
  ): Promise<'removed' | 'waiting' | 'absent'> {
    const { clock, confirmTimeoutMs } = this.#options;
    await using scratch = new Scratch(connection, this.#logger);
    if ((await this.#stateOf(scratch, queue)) === 'absent') return 'absent';
    for (const step of bindingSteps(queue)) {
      // A hash exchange stays bound: it serves the other partitions.
      if (step.destination === queue.name) await this.#unbind(scratch, step);
    }
    const before = await this.#stateOf(scratch, queue);
    if (before !== 'idle') return before;
    // What was routed before the unbinding may still be on its way into the queue, and RabbitMQ confirms what it cannot
    // put into a deleted one. After this time a publisher without a confirm has sent its message again.
    await delay(clock, confirmTimeoutMs, AbortSignal.any([over, signal]));
    const after = await this.#stateOf(scratch, queue);
    if (after !== 'idle') return after;
    await this.removeQueue(connection, queue);
    return 'removed';
  }

  /**
   * `idle` means that nothing is in it: the broker counts what waits, not what consumers hold, but a consumer of a quorum
   * queue counts until what it held is back, and a classic queue has it back before the channel is closed.
   */
  async #stateOf(scratch: Scratch, { name }: QueueDeclaration): Promise<'idle' | 'waiting' | 'absent'> {
    let used = 0;
    const refusal = await scratch.attempt(async (channel) => {
      const { messageCount, consumerCount } = await channel.checkQueue(name);
      used = messageCount + consumerCount;
    });
    if (refusal === undefined) return used === 0 ? 'idle' : 'waiting';
    if (refusal.code === NOT_FOUND) return 'absent';
    throw new HcpError('topology_forbidden', `Queue ${name} cannot be looked at: ${refusal.text}`);
  }

  async #exchange(scratch: Scratch, name: ExchangeName): Promise<void> {
    const refusal = await scratch.attempt((channel) =>
      channel.assertExchange(name, EXCHANGES[name], { durable: true }),
    );
    await this.#answered(scratch, name, refusal);
  }

  async #hashExchange(scratch: Scratch, name: HashExchangeName, over: AbortSignal): Promise<void> {
    const { type, arguments: args } = HASH_EXCHANGE;
    try {
      const refusal = await scratch.attempt((channel) =>
        channel.assertExchange(name, type, { durable: true, arguments: args }),
      );
      await this.#answered(scratch, name, refusal);
    } catch (error) {
      const fatal = over.aborted ? refusalOf(over.reason.cause) : undefined;
      throw (fatal && unsupportedType(`Exchange ${name}`, fatal)) ?? error;
    }
  }

  async #answered(scratch: Scratch, name: string, refusal: Refusal | undefined): Promise<void> {
    const subject = `Exchange ${name}`;
    if (refusal === undefined) return;
    if (refusal.code !== ACCESS_REFUSED) throw unsupportedType(subject, refusal) ?? mismatch(subject, refusal);
    if (await scratch.attempt((channel) => channel.checkExchange(name))) throw missing(subject, refusal);
    this.#warnOnce(name, `${subject} is not ours to declare; it exists, its type is taken on trust`);
  }

  async #queue(scratch: Scratch, queue: QueueDeclaration): Promise<'ours' | 'operator'> {
    const subject = `Queue ${queue.name}`;
    const args = queueArguments(queue, this.#options.queueType);
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
    for (const step of bindingSteps(queue)) {
      const { source, routingKey, destination } = step;
      const refusal = await scratch.attempt((channel) =>
        isHashExchange(destination)
          ? channel.bindExchange(destination, source, routingKey)
          : channel.bindQueue(destination, source, routingKey),
      );
      if (refusal === undefined) continue;
      if (origin === 'ours' || refusal.code !== ACCESS_REFUSED) throw forbidden(step, 'bound to', refusal);
    }
  }

  async #unbind(scratch: Scratch, step: BindingStep): Promise<void> {
    const { source, routingKey, destination } = step;
    const refusal = await scratch.attempt((channel) => channel.unbindQueue(destination, source, routingKey));
    if (refusal !== undefined && refusal.code !== NOT_FOUND) throw forbidden(step, 'unbound from', refusal);
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

function forbidden(step: BindingStep, deed: string, { text }: Refusal): HcpError<'topology_forbidden'> {
  const { source, routingKey, destination } = step;
  const subject = `${isHashExchange(destination) ? 'Exchange' : 'Queue'} ${destination}`;
  return new HcpError('topology_forbidden', `${subject} cannot be ${deed} ${source} with key ${routingKey}: ${text}`);
}
