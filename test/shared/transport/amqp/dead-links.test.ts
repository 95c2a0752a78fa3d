import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { closeChannel } from '../../../../shared/transport/amqp/channel.ts';
import { connectAmqp } from '../../../../shared/transport/amqp/index.ts';
import { commandQueue, commandRoute } from '../../../../shared/transport/topology.ts';
import type { TransportStatus } from '../../../../shared/transport/transport.ts';
import { describeAmqp } from '../../../support/amqp-room.ts';
import { Recorder, RecordingClock } from '../../../support/recorder.ts';
import { verifies } from '../../../support/verifies.ts';

describe('a broker that accepts the link and says nothing', () => {
  verifies('HCP-010', 'is given up after ten seconds', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number }; // it listens on TCP
    const clock = new RecordingClock();
    const refused = expect(
      connectAmqp({ url: `amqp://127.0.0.1:${port}`, heartbeatSeconds: 1, clock }),
    ).rejects.toMatchObject({ code: 'transport_unreachable', retryable: true, message: /no answer within 10000 ms/ });
    await clock.asked(10_000);
    clock.advance(10_000);
    await refused;
    silent.close();
  });
});

describeAmqp('a link that dies silently', (room) => {
  const message = { route: commandRoute('lab'), body: Buffer.from('x'), properties: {} };

  verifies(
    ['HCP-008', 'HCP-010'],
    'is hung up on when nothing is confirmed in time, and everything is sent again',
    async () => {
      const clock = new RecordingClock();
      const { proxy, url } = await room.proxy();
      // The heartbeat would take minutes: what is seen here is the confirm time-out.
      const options = { heartbeatSeconds: 60, confirmTimeoutMs: 7000, random: () => 0, reconnect: {} };
      const transport = await room.connect({ url, clock, ...options });
      await transport.declare(commandQueue('lab'));
      const statuses = new Recorder<TransportStatus>();
      transport.watch(statuses.add);
      proxy.freeze();
      const published = transport.publish(message);
      await clock.asked(7000);
      clock.advance(6999);
      expect(transport.status).toBe('open');
      clock.advance(1);
      expect(transport.status).toBe('lost');
      proxy.pass();
      await clock.asked(1000);
      clock.advance(1000);
      expect(await published).toBe('confirmed');
      expect(statuses.all).toEqual(['lost', 'open']);
    },
  );

  it('does not hold up the close of a consumer whose goodbye was lost with it', async () => {
    const { proxy, url } = await room.proxy();
    const transport = await room.connect({ url });
    const consumers = [
      await transport.consume(commandQueue('one'), () => {}),
      await transport.consume(commandQueue('two', { singleActiveConsumer: true }), () => {}),
    ];
    proxy.freeze();
    const closed = Promise.all(consumers.map((consumer) => consumer.close()));
    proxy.resetAll();
    await closed;
    proxy.pass();
    await transport.close();
  });

  it('does not hold up the close of a channel whose goodbye was lost with it', async () => {
    const { proxy, url } = await room.proxy();
    const channel = await room.raw(url);
    proxy.freeze();
    const closed = closeChannel(channel);
    proxy.resetAll();
    await closed;
    await closeChannel(channel);
  });

  verifies('HCP-016', 'is let go of by close when its time is up', async () => {
    const clock = new RecordingClock();
    const { proxy, url } = await room.proxy();
    const patience = { heartbeatSeconds: 60, confirmTimeoutMs: 60_000, closeTimeoutMs: 5000 };
    const transport = await room.connect({ url, clock, ...patience });
    await transport.consume(commandQueue('lab'), () => {});
    proxy.freeze();
    const published = transport.publish(message).catch((error: unknown) => error);
    const closed = transport.close();
    await clock.asked(5000);
    clock.advance(5000);
    await clock.asked(2000, 2);
    clock.advance(2000);
    await closed;
    expect(await published).toMatchObject({ code: 'transport_closed' });
    expect(transport.status).toBe('closed');
  });
});
