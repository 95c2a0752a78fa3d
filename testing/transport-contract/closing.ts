import assert from 'node:assert/strict';
import { isHcpError } from '../../shared/errors.ts';
import type { Delivery } from '../../shared/transport/transport.ts';
import { type Scenario, series, text, texts } from './stage.ts';

const isClosed = (error: unknown) => isHcpError(error, 'transport_closed');

export const closing: readonly Scenario[] = [
  {
    name: 'closes a consumer only after its running handlers have ended',
    verifies: ['HCP-016'],
    async play(stage) {
      const transport = await stage.open();
      const { promise: started, resolve: tellStarted } = Promise.withResolvers<void>();
      const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
      let finished = false;
      const handler = async (delivery: Delivery) => {
        tellStarted();
        await finish;
        delivery.ack();
        finished = true;
      };
      const consumer = await transport.consume(stage.commands(), handler, { prefetch: 1 });
      await stage.send(transport, 'm1');
      await stage.within('the handler to start', started);
      const closed = consumer.close().then(() => finished);
      await stage.roundTrips(transport);
      tellFinish();
      assert.equal(await stage.within('the consumer to close', closed), true);
      assert.deepEqual(await stage.drain(transport), [], 'its ack counted');
    },
  },
  {
    name: 'gives back what a closed consumer left unsettled, in order, and nothing it took is lost',
    verifies: ['HCP-016'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 4 });
      await stage.send(transport, ...series(6));
      const [, second] = await inbox.take(4);
      second?.ack();
      await inbox.next();
      await inbox.close();
      await inbox.close();
      assert.deepEqual(await stage.drain(transport), ['m1', 'm3', 'm4', 'm5', 'm6']);
    },
  },
  {
    name: 'passes over a settlement that comes after its consumer was closed',
    verifies: ['HCP-016'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 2 });
      await stage.send(transport, 'm1', 'm2');
      const [first, second] = await inbox.take(2);
      await inbox.close();
      first?.ack();
      second?.reject();
      assert.deepEqual(await stage.drain(transport), ['m1', 'm2']);
    },
  },
  {
    name: 'delivers nothing to a closed consumer while others go on',
    async play(stage) {
      const transport = await stage.open();
      const first = await stage.consume(transport, stage.commands(), { settle: 'ack' });
      await first.close();
      const second = await stage.consume(transport, stage.commands(), { settle: 'ack' });
      await stage.send(transport, ...series(5));
      assert.deepEqual(texts(await second.take(5)), series(5));
      assert.equal(first.arrived.length, 0);
    },
  },
  {
    name: 'waits for the open confirms when closed',
    verifies: ['HCP-016'],
    async play(stage) {
      const sender = await stage.open({ window: 10 });
      await sender.declare(stage.commands());
      const publishes = Promise.all(series(100).map((body) => sender.publish(stage.command(body))));
      const closed = sender.close();
      const outcomes = await stage.within('the confirms', publishes);
      await stage.within('the transport to close', closed);
      assert.deepEqual(new Set(outcomes), new Set(['confirmed']));
      assert.deepEqual(await stage.drain(await stage.open()), series(100));
    },
  },
  {
    name: 'closes its consumers and gives back what they left unsettled when closed',
    verifies: ['HCP-016'],
    async play(stage) {
      const receiver = await stage.open();
      const inbox = await stage.consume(receiver, stage.commands(), { prefetch: 2 });
      await stage.send(receiver, ...series(3));
      const [first] = await inbox.take(2);
      first?.ack();
      await stage.within('the transport to close', receiver.close());
      assert.deepEqual(await stage.drain(await stage.open()), ['m2', 'm3']);
    },
  },
  {
    name: 'refuses every call after close',
    verifies: ['HCP-016'],
    async play(stage) {
      const transport = await stage.open();
      await transport.close();
      await assert.rejects(transport.publish(stage.command('late')), isClosed);
      await assert.rejects(transport.declare(stage.commands()), isClosed);
      await assert.rejects(transport.remove(stage.commands()), isClosed);
      await assert.rejects(
        transport.consume(stage.commands(), () => {}),
        isClosed,
      );
      assert.equal(transport.status, 'closed');
    },
  },
  {
    name: 'closes once, however often it is asked, and says so',
    verifies: ['HCP-016'],
    async play(stage) {
      const transport = await stage.open();
      const statuses = stage.statuses(transport);
      const unwatched = stage.statuses(transport);
      unwatched.stop();
      await stage.within('both closes', Promise.all([transport.close(), transport.close()]));
      await stage.within('the third close', transport.close());
      assert.deepEqual([statuses.changes, unwatched.changes], [['closed'], []]);
    },
  },
  {
    name: 'closes at the end of an await using block',
    verifies: ['HCP-016'],
    async play(stage) {
      const transport = await stage.open();
      {
        await using scoped = transport;
        await using consumer = await scoped.consume(stage.commands(), (delivery) => delivery.ack());
        assert.ok(consumer);
      }
      assert.equal(transport.status, 'closed');
    },
  },
  {
    name: 'lets a handler publish while its consumer is being closed',
    verifies: ['HCP-016'],
    async play(stage) {
      const transport = await stage.open();
      const { promise: started, resolve: tellStarted } = Promise.withResolvers<void>();
      const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
      const events = await stage.open();
      const inbox = await stage.consume(events, stage.events(), { settle: 'ack' });
      const handler = async (delivery: Delivery) => {
        tellStarted();
        await finish;
        await transport.publish(stage.event('last words'));
        delivery.ack();
      };
      await transport.consume(stage.commands(), handler);
      await stage.send(transport, 'm1');
      await stage.within('the handler to start', started);
      const closed = transport.close();
      tellFinish();
      await stage.within('the transport to close', closed);
      assert.equal(text(await inbox.next()), 'last words');
      assert.deepEqual(await stage.drain(events), []);
    },
  },
];
