import { expect } from 'vitest';
import { commandQueue, commandRoute } from '../../../../shared/transport/topology.ts';
import type { Transport, TransportStatus } from '../../../../shared/transport/transport.ts';
import { describeAmqp } from '../../../support/amqp-room.ts';
import { Recorder, RecordingClock, recordingLogger } from '../../../support/recorder.ts';
import { verifies } from '../../../support/verifies.ts';

function statusesOf(transport: Transport): Recorder<TransportStatus> {
  const statuses = new Recorder<TransportStatus>();
  transport.watch(statuses.add);
  return statuses;
}

describeAmqp('reconnecting to RabbitMQ', (room) => {
  verifies(
    'HCP-010',
    'tries again after 1, 2, 4 … 60 seconds plus jitter, on both links, and then starts over',
    async () => {
      const clock = new RecordingClock();
      const { proxy, url } = await room.proxy();
      const transport = await room.connect({ url, clock, random: () => 0.5, reconnect: {} });
      const statuses = statusesOf(transport);
      proxy.refuse();
      for (const delayMs of [1100, 2200, 4400, 8800, 17_600, 35_200, 66_000]) {
        await clock.asked(delayMs, 2);
        clock.advance(delayMs);
      }
      await clock.asked(66_000, 4);
      proxy.pass();
      clock.advance(66_000);
      await statuses.until((all) => all.includes('open'));
      expect(statuses.all).toEqual(['lost', 'open']);

      proxy.resetAll();
      await clock.asked(1100, 4);
      clock.advance(1100);
      await statuses.count(4);
      expect(statuses.all).toEqual(['lost', 'open', 'lost', 'open']);
    },
  );

  verifies(
    ['HCP-010', 'HCP-003'],
    'declares the topology again, also where everything was deleted meanwhile',
    async () => {
      const { proxy, url } = await room.proxy();
      const transport = await room.connect({ url });
      const statuses = statusesOf(transport);
      const declared = commandQueue('declared');
      const consumed = commandQueue('consumed');
      await transport.declare(declared);
      const bodies = new Recorder<string>();
      await transport.consume(consumed, (delivery) => {
        bodies.add(Buffer.from(delivery.body).toString());
        delivery.ack();
      });
      proxy.refuse();
      const raw = await room.raw();
      for (const { name } of [declared, consumed]) await raw.deleteQueue(name);
      for (const exchange of ['hcp.commands', 'hcp.events', 'hcp.dead']) await raw.deleteExchange(exchange);
      proxy.pass();
      await statuses.until((all) => all.at(-1) === 'open');

      for (const id of ['declared', 'consumed']) {
        const message = { route: commandRoute(id), body: Buffer.from(id), properties: {} };
        // The links come back one by one, so for a moment there may be an exchange and no queue.
        await expect.poll(() => transport.publish(message), { interval: 1 }).toBe('confirmed');
      }
      await bodies.until((all) => all.includes('consumed'));
      expect(await raw.get('hcp.cmd.declared')).toMatchObject({ content: Buffer.from('declared') });
    },
  );

  verifies(['HCP-010', 'HCP-014'], 'says in the log what happened to which link, without the password', async () => {
    const { logger, lines } = recordingLogger();
    const { proxy, url } = await room.proxy();
    const secret = new URL(await room.login({ configure: '.*', write: '.*', read: '.*' }));
    const mine = Object.assign(new URL(url), { username: secret.username, password: secret.password });
    const transport = await room.connect({ url: mine.href, logger, login: secret.username });
    proxy.resetAll();
    await lines.until((all) => all.filter((line) => line.includes('The link to the broker is back')).length === 2);
    const losses = lines.all.filter((line) => line.includes('Lost the link to the broker'));
    expect(losses.map((line) => JSON.parse(line).link).toSorted()).toEqual(['consume', 'publish']);
    expect(lines.all.join()).not.toContain(secret.password);
    await transport.close();
  });
});
