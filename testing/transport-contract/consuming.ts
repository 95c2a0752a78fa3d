import assert from 'node:assert/strict';
import type { Delivery } from '../../shared/transport/transport.ts';
import { type Scenario, series, text, texts } from './stage.ts';

export const consuming: readonly Scenario[] = [
  {
    name: 'delivers first in, first out',
    async play(stage) {
      const transport = await stage.open();
      await transport.declare(stage.commands());
      await stage.send(transport, ...series(30));
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 4, settle: 'ack' });
      assert.deepEqual(texts(await inbox.take(30)), series(30));
    },
  },
  {
    name: 'marks a first delivery as such',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands());
      await stage.send(transport, 'm1');
      const delivery = await inbox.next();
      assert.deepEqual([delivery.redelivered, delivery.attempts], [false, 0]);
    },
  },
  {
    name: 'hands out no more than the prefetch, and one more for each one settled',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 3 });
      await stage.send(transport, ...series(6));
      const [first, , third] = await inbox.take(3);
      await stage.roundTrips(transport);
      assert.equal(inbox.untaken, 0, 'the fourth waits');
      third?.ack();
      assert.equal(text(await inbox.next()), 'm4');
      await stage.roundTrips(transport);
      assert.equal(inbox.untaken, 0, 'the fifth waits');
      first?.ack();
      assert.equal(text(await inbox.next()), 'm5');
    },
  },
  {
    name: 'hands out ten at a time when no prefetch is given',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands());
      await stage.send(transport, ...series(15));
      const taken = await inbox.take(10);
      await stage.roundTrips(transport);
      assert.equal(inbox.untaken, 0);
      for (const delivery of taken) delivery.ack();
      assert.deepEqual(texts(await inbox.take(5)), series(15).slice(10));
    },
  },
  {
    name: 'lets deliveries be settled in any order',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 5 });
      await stage.send(transport, ...series(10));
      const firsts = await inbox.take(5);
      for (const index of [3, 0, 4, 1, 2]) firsts[index]?.ack();
      assert.deepEqual(texts(await inbox.take(5)), series(10).slice(5));
    },
  },
  {
    name: 'calls the handler for the next delivery while earlier calls still run',
    async play(stage) {
      const transport = await stage.open();
      const started: string[] = [];
      const { promise: bothStarted, resolve: tellBothStarted } = Promise.withResolvers<void>();
      const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
      const handler = async (delivery: Delivery) => {
        if (started.push(text(delivery)) === 2) tellBothStarted();
        await finish;
        delivery.ack();
      };
      await transport.consume(stage.commands(), handler, { prefetch: 2 });
      await stage.send(transport, 'm1', 'm2');
      await stage.within('two handlers at once', bothStarted);
      tellFinish();
      assert.deepEqual(started, ['m1', 'm2']);
    },
  },
  {
    name: 'takes the end of a handler for no settlement',
    verifies: ['HCP-004'],
    async play(stage) {
      const transport = await stage.open();
      const first = await stage.consume(transport, stage.commands(), { prefetch: 1 });
      await stage.send(transport, 'm1');
      await first.next();
      await stage.roundTrips(transport);
      await first.close();
      assert.deepEqual(await stage.drain(transport), ['m1']);
    },
  },
];
