import assert from 'node:assert/strict';
import type { Transport } from '../../shared/transport/transport.ts';
import { firstAppearances, type Scenario, type Stage, series, text, texts } from './stage.ts';

/** Cuts every link and waits until each of these transports has noticed and is back. */
async function cutAndReturn(stage: Stage, ...transports: Transport[]): Promise<void> {
  const logs = transports.map((transport) => stage.statuses(transport));
  await stage.cutLinks();
  for (const log of logs) {
    await log.until('lost');
    await log.until('open');
    log.stop();
  }
}

export const lostLinks: readonly Scenario[] = [
  {
    name: 'tells its watchers that the link was lost and that it is back',
    verifies: ['HCP-010'],
    async play(stage) {
      const transport = await stage.open();
      assert.equal(transport.status, 'open');
      await cutAndReturn(stage, transport);
      assert.equal(transport.status, 'open');
      await transport.declare(stage.commands());
      await stage.send(transport, 'm1');
      assert.deepEqual(await stage.drain(transport), ['m1']);
    },
  },
  {
    name: 'goes on consuming by itself after a cut',
    verifies: ['HCP-010'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { settle: 'ack' });
      await stage.send(transport, 'before');
      await inbox.takeAll(['before']);
      await cutAndReturn(stage, transport);
      await stage.send(transport, 'after');
      await inbox.takeAll(['after']);
    },
  },
  {
    name: 'tells a consumer that the deliveries in its hands became void',
    verifies: ['HCP-010'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands());
      await stage.send(transport, 'm1');
      await inbox.next();
      await stage.cutLinks();
      assert.equal((await inbox.interruption()).code, 'transport_lost');
    },
  },
  {
    name: 'brings the unsettled messages back after a cut, in their order and before those that wait',
    verifies: ['HCP-010'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 3 });
      await stage.send(transport, ...series(5));
      await inbox.take(3);
      await cutAndReturn(stage, transport);
      const again = await inbox.take(3);
      assert.deepEqual(texts(again), series(3));
      assert.ok(again.every((delivery) => delivery.redelivered && delivery.attempts > 0));
      for (const delivery of again) delivery.ack();
      assert.deepEqual(texts(await inbox.take(2)), ['m4', 'm5']);
    },
  },
  {
    name: 'passes over the settlement of a delivery whose link is gone, and the message comes again',
    verifies: ['HCP-010'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 1 });
      await stage.send(transport, 'm1', 'm2');
      const stale = await inbox.next();
      await cutAndReturn(stage, transport);
      stale.ack();
      const fresh = await inbox.next();
      stale.reject();
      assert.equal(text(fresh), 'm1');
      fresh.ack();
      assert.deepEqual(await inbox.ack(1), ['m2']);
    },
  },
  {
    name: 'never lets the settlement of a delivery whose link is gone hit another delivery',
    verifies: ['HCP-010'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 2 });
      await stage.send(transport, ...series(4));
      const [first, second] = await inbox.take(2);
      first?.ack();
      const third = await inbox.next(); // so the broker has seen the ack
      await cutAndReturn(stage, transport);
      // m2 and m3 are out again; a broker that counts deliveries calls m3 now what it called m2 before.
      assert.deepEqual(texts(await inbox.take(2)), ['m2', 'm3']);
      second?.ack();
      third.ack();
      await stage.roundTrips(transport);
      assert.equal(inbox.untaken, 0, 'nothing was settled, so nothing more is handed out');
      await inbox.close();
      assert.deepEqual(await stage.drain(transport), ['m2', 'm3', 'm4']);
    },
  },
  {
    name: 'sends unconfirmed messages again after a cut, in order, and loses none',
    verifies: ['HCP-008', 'HCP-010'],
    async play(stage) {
      const transport = await stage.open({ window: 50 });
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 100, settle: 'ack' });
      const bodies = series(500);
      const sent = stage.publishAll(transport, bodies);
      for (const body of ['m30', 'm200']) {
        await inbox.takeAll([body]);
        await stage.cutLinks();
      }
      assert.deepEqual(new Set(await sent), new Set(['confirmed']));
      await inbox.takeAll(bodies);
      assert.deepEqual(firstAppearances(texts(inbox.arrived)), bodies);
    },
  },
  {
    name: 'keeps what was confirmed before a cut for a consumer that comes after it',
    verifies: ['HCP-008'],
    async play(stage) {
      const transport = await stage.open();
      await transport.declare(stage.commands());
      await stage.send(transport, ...series(20));
      await cutAndReturn(stage, transport);
      assert.deepEqual(await stage.drain(transport), series(20));
    },
  },
  {
    name: 'works on after fifty cuts in a row',
    verifies: ['HCP-010'],
    timeLimitMs: 120_000,
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { settle: 'ack' });
      const bodies = series(50);
      const sent = [];
      for (const body of bodies) {
        sent.push(transport.publish(stage.command(body)));
        await stage.cutLinks();
      }
      const outcomes = await stage.within('fifty publishes to be confirmed', Promise.all(sent));
      assert.deepEqual(new Set(outcomes), new Set(['confirmed']));
      await inbox.takeAll(bodies);
      assert.deepEqual(firstAppearances(texts(inbox.arrived)), bodies);
      await stage.roundTrips(transport);
      assert.equal(transport.status, 'open');
    },
  },
  {
    name: 'makes a queue anew that was deleted under its consumer, tells it, and goes on',
    verifies: ['HCP-010'],
    async play(stage) {
      const transport = await stage.open();
      const queue = stage.commands();
      const inbox = await stage.consume(transport, queue, { prefetch: 1 });
      await stage.send(transport, 'lost 1', 'lost 2');
      const stale = await inbox.next();
      await stage.harness.faults.deleteQueue(queue.name);
      assert.equal((await inbox.interruption()).code, 'queue_deleted');
      const deadline = Date.now() + stage.limitMs;
      while ((await transport.publish(stage.command('new'))) === 'unroutable') assert.ok(Date.now() < deadline);
      stale.ack();
      assert.deepEqual(await inbox.ack(1), ['new']);
      await stage.send(transport, 'newer');
      assert.deepEqual(await inbox.ack(1), ['newer']);
    },
  },
];
