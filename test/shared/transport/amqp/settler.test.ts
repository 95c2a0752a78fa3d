import { setImmediate as turn } from 'node:timers/promises';
import { type Channel, IllegalOperationError } from 'amqplib';
import { describe, expect, it } from 'vitest';
import { Settler } from '../../../../shared/transport/amqp/delivery.ts';
import { verifies } from '../../../support/verifies.ts';

/** A channel that writes down what would go to the broker. */
function scriptedChannel(): { channel: Channel; frames: string[]; close(): void } {
  const frames: string[] = [];
  let open = true;
  const send = (frame: string) => {
    if (!open) throw new IllegalOperationError('Channel closed', '');
    frames.push(frame);
  };
  const channel: Pick<Channel, 'ack' | 'reject'> = {
    ack: ({ fields }, multiple) => send(`ack ${fields.deliveryTag}${multiple ? ' and before' : ''}`),
    reject: ({ fields }, requeue) => send(`reject ${fields.deliveryTag}${requeue ? ' requeue' : ''}`),
  };
  return {
    channel: channel as Channel, // a settler uses these two only
    frames,
    close: () => {
      open = false;
    },
  };
}

describe('settling', () => {
  it('sends the acks of one turn of the event loop together', async () => {
    const { channel, frames } = scriptedChannel();
    const settler = new Settler(channel);
    for (const tag of [1, 2, 3, 4]) settler.delivered(tag);
    for (const tag of [2, 1, 4]) settler.ack(tag);
    expect(frames).toEqual([]);
    await turn();
    expect(frames).toEqual(['ack 2 and before', 'ack 4']);
  });

  it('rejects at once, so that a message comes back in its place', () => {
    const { channel, frames } = scriptedChannel();
    const settler = new Settler(channel);
    for (const tag of [1, 2]) settler.delivered(tag);
    settler.reject(1, true);
    settler.reject(2, false);
    expect(frames).toEqual(['reject 1 requeue', 'reject 2']);
  });

  verifies('HCP-010', 'never sends the settlement of a delivery whose channel is over', async () => {
    const { channel, frames } = scriptedChannel();
    const settler = new Settler(channel);
    for (const tag of [1, 2, 3]) settler.delivered(tag);
    settler.ack(1);
    settler.end();
    settler.ack(2);
    settler.reject(3, true);
    await turn();
    expect([frames, settler.isOver]).toEqual([[], true]);
  });

  it('takes a channel that is just closing for one that is over', async () => {
    const { channel, frames, close } = scriptedChannel();
    const settler = new Settler(channel);
    settler.delivered(1);
    close();
    settler.ack(1);
    await turn();
    settler.reject(1, true);
    expect([frames, settler.isOver]).toEqual([[], true]);
  });
});
