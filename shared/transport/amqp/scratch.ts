import type { Channel, ChannelModel } from 'amqplib';
import type { Logger } from '../../logger.ts';
import { channelEnd, closeChannel, type Refusal, refusalOf } from './channel.ts';

/** A channel to make mistakes on: the broker closes it at the first refusal, and the next attempt opens another. */
export class Scratch implements AsyncDisposable {
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
