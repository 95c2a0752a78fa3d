import type { Channel } from 'amqplib';
import type { Logger } from '../../logger.ts';

/** Why the broker closed a channel, in its own words. */
export interface Refusal {
  readonly code: number;
  readonly text: string;
}

/**
 * Watches a fresh channel. Call it before anything else: an `error` nobody listens to kills the process.
 * Resolves when the channel is over, with the broker's reason if it was the broker who closed this one channel.
 */
export function channelEnd(channel: Channel, logger: Logger): Promise<Refusal | undefined> {
  return new Promise((resolve) => {
    let refusal: Refusal | undefined;
    channel.on('error', (error) => {
      refusal = refusalOf(error);
    });
    channel.on('close', () => resolve(refusal));
    channel.on('handler-error', (error, event) => logger.error({ err: error, event }, 'A channel listener threw'));
  });
}

/**
 * Closes a channel; resolves when it is over, however that came about. amqplib's own promise is never settled when the
 * connection dies before the broker has answered.
 */
export function closeChannel(channel: Channel): Promise<void> {
  return new Promise((resolve) => {
    const over = () => resolve();
    channel.once('close', over);
    channel.close().then(over, over); // it rejects when the channel was over before
  });
}

/** The broker's reply code and text in an error of amqplib; `undefined` when it is another kind of error. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'number') return undefined;
  return { code: error.code, text: /with message "(.*)"$/s.exec(error.message)?.[1] ?? error.message };
}
