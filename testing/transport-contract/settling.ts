import assert from 'node:assert/strict';
import { deadLetterQueue } from '../../shared/transport/topology.ts';
import type { Delivery } from '../../shared/transport/transport.ts';
import { type Scenario, series, text, texts } from './stage.ts';

export const settling: readonly Scenario[] = [
  {
    name: 'forgets what was acked',
    verifies: ['HCP-004'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 2 });
      await stage.send(transport, 'm1', 'm2', 'm3');
      assert.deepEqual(await inbox.ack(3), ['m1', 'm2', 'm3']);
      await inbox.close();
      assert.deepEqual(await stage.drain(transport), []);
    },
  },
  {
    name: 'brings a retried message back first, says so and counts it',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 1 });
      await stage.send(transport, ...series(3));
      (await inbox.next()).retry();
      const second = await inbox.next();
      assert.deepEqual([text(second), second.redelivered, second.attempts], ['m1', true, 1]);
      second.retry();
      const third = await inbox.next();
      assert.deepEqual([text(third), third.redelivered, third.attempts], ['m1', true, 2]);
      third.ack();
      assert.deepEqual(await inbox.ack(2), ['m2', 'm3']);
    },
  },
  {
    name: 'brings several retried messages back in their order, before those that wait',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 3 });
      await stage.send(transport, ...series(5));
      for (const delivery of await inbox.take(3)) delivery.retry();
      assert.deepEqual(await inbox.ack(5), series(5));
    },
  },
  {
    name: 'takes the first settlement and passes over the others',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 1 });
      await stage.send(transport, ...series(3));
      const first = await inbox.next();
      first.ack();
      first.ack();
      first.retry();
      first.reject();
      assert.deepEqual(await inbox.ack(2), ['m2', 'm3']);
      await inbox.close();
      assert.deepEqual(await stage.drain(transport), []);
      const dead = await stage.consume(transport, deadLetterQueue(stage.commands()));
      await stage.roundTrips(transport);
      assert.equal(dead.untaken, 0);
    },
  },
  {
    name: 'retries what a throwing handler left unsettled, and goes on with the others',
    verifies: ['HCP-007'],
    async play(stage) {
      const transport = await stage.open();
      const handled: string[] = [];
      const { promise: done, resolve: tellDone } = Promise.withResolvers<void>();
      const failOnce = new Set(['m2', 'm4']);
      const handler = (delivery: Delivery): void | Promise<void> => {
        const body = text(delivery);
        if (failOnce.delete(body)) {
          const error = new Error(`no ${body} today`);
          if (body === 'm2') throw error;
          return Promise.reject(error);
        }
        delivery.ack();
        handled.push(body);
        if (handled.length === 5) tellDone();
      };
      await transport.consume(stage.commands(), handler, { prefetch: 2 });
      await stage.send(transport, ...series(5));
      await stage.within(`five handled messages`, done);
      assert.deepEqual(handled.toSorted(), series(5));
    },
  },
  {
    name: 'leaves a settlement alone when the handler throws after it',
    verifies: ['HCP-007'],
    async play(stage) {
      const transport = await stage.open();
      const seen: string[] = [];
      const { promise: done, resolve: tellDone } = Promise.withResolvers<void>();
      const handler = (delivery: Delivery) => {
        delivery.ack();
        if (seen.push(text(delivery)) === 2) tellDone();
        throw new Error('too late to matter');
      };
      const consumer = await transport.consume(stage.commands(), handler, { prefetch: 1 });
      await stage.send(transport, 'm1', 'm2');
      await stage.within('two messages', done);
      await consumer.close();
      assert.deepEqual([seen, await stage.drain(transport)], [['m1', 'm2'], []]);
    },
  },
  {
    name: 'lets a delivery be settled long after its handler returned',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 1 });
      await stage.send(transport, 'm1', 'm2');
      const first = await inbox.next();
      await stage.roundTrips(transport);
      first.ack();
      assert.deepEqual(texts([await inbox.next()]), ['m2']);
    },
  },
];
