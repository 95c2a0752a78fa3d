import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import {
  commandQueue,
  commandRoute,
  eventQueue,
  eventRoute,
  type QueueDeclaration,
} from '../../../../shared/transport/topology.ts';
import type { ConsumeOptions, Delivery, Transport } from '../../../../shared/transport/transport.ts';
import { describeAmqp } from '../../../support/amqp-room.ts';
import { Recorder, recordingLogger } from '../../../support/recorder.ts';
import { verifies } from '../../../support/verifies.ts';

const DEEP_HEADERS_SENDER = new URL('./support/deep-headers-sender.ts', import.meta.url);

const text = (delivery: Delivery) => Buffer.from(delivery.body).toString();

async function consumeBodies(transport: Transport, queue: QueueDeclaration, prefetch = 10): Promise<Recorder<string>> {
  const bodies = new Recorder<string>();
  const handler = (delivery: Delivery) => {
    bodies.add(text(delivery));
    delivery.ack();
  };
  await transport.consume(queue, handler, { prefetch });
  return bodies;
}

describeAmqp('a consumer', (room) => {
  verifies('HCP-010', 'keeps trying while its queue exists otherwise, and goes on when that one is gone', async () => {
    const { logger, lines } = recordingLogger();
    const { proxy, url } = await room.proxy();
    const transport = await room.connect({ url, logger });
    const bodies = await consumeBodies(transport, commandQueue('usurped'));
    proxy.refuse();
    const raw = await room.raw();
    await raw.deleteQueue('hcp.cmd.usurped');
    await raw.assertQueue('hcp.cmd.usurped', { durable: true });
    proxy.pass();
    await lines.until((all) => all.filter((line) => line.includes('topology_mismatch')).length >= 3);
    await raw.deleteQueue('hcp.cmd.usurped');
    const message = { route: commandRoute('usurped'), body: Buffer.from('back'), properties: {} };
    await expect.poll(() => transport.publish(message), { interval: 1 }).toBe('confirmed');
    expect(await bodies.count(1)).toEqual(['back']);
  });

  it('that is cut off leaves its place and its messages, in order, to the next', async () => {
    const { proxy, url } = await room.proxy();
    const active = await room.connect({ url });
    const held = new Recorder<string>();
    await active.consume(eventQueue('alpha'), (delivery) => held.add(text(delivery)), { prefetch: 2 });
    const heir = await room.connect();
    const inherited = await consumeBodies(heir, eventQueue('alpha'));
    for (const body of ['m1', 'm2', 'm3', 'm4']) {
      const route = eventRoute('alpha', null, 'event');
      await heir.publish({ route, body: Buffer.from(body), properties: {} });
    }
    await held.count(2);
    expect(inherited.all).toEqual([]);
    proxy.refuse();
    expect(await inherited.count(4)).toEqual(['m1', 'm2', 'm3', 'm4']);
    proxy.pass();
  });

  verifies('HCP-007', 'gets rid of a message whose headers break the decoder, and goes on with the next', async () => {
    const transport = await room.connect();
    const bodies = await consumeBodies(transport, commandQueue('poisoned'), 1);
    // A few kilobytes: the connection dies before any code of ours has seen the message.
    const workerData = { url: room.url, exchange: 'hcp.commands', routingKey: 'poisoned', depth: 5000 };
    const sender = new Worker(DEEP_HEADERS_SENDER, { workerData, resourceLimits: { stackSizeMb: 32 } });
    expect(await once(sender, 'exit')).toEqual([0]);
    await transport.publish({ route: commandRoute('poisoned'), body: Buffer.from('fine'), properties: {} });
    expect(await bodies.count(1)).toEqual(['fine']);
    const raw = await room.raw();
    await expect.poll(() => raw.checkQueue('hcp.dead.cmd.poisoned')).toMatchObject({ messageCount: 1 });
  });

  it.each([
    [{ prefetch: 0 }, /^prefetch must be an integer from 1 to 65535, but is 0$/],
    [{ prefetch: 65_536 }, /^prefetch must be/],
    [{ prefetsch: 5 }, /^Unknown option prefetsch; did you mean prefetch\?$/],
  ])('is refused bad options before any I/O: %o', async (options, message) => {
    const transport = await room.connect();
    const refused = transport.consume(commandQueue('lab'), () => {}, options as ConsumeOptions); // as JavaScript would
    await expect(refused).rejects.toMatchObject({ name: 'TypeError', message });
  });
});
