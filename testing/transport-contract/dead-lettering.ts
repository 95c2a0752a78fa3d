import assert from 'node:assert/strict';
import { deadLetterQueue } from '../../shared/transport/topology.ts';
import type { Delivery } from '../../shared/transport/transport.ts';
import { type Scenario, series, text, texts } from './stage.ts';

export const deadLettering: readonly Scenario[] = [
  {
    name: 'moves a rejected message to the dead-letter queue with its body and properties',
    verifies: ['HCP-007'],
    async play(stage) {
      const transport = await stage.open();
      const queue = stage.commands();
      const inbox = await stage.consume(transport, queue);
      const properties = {
        messageId: '7a4f3c1e-52f4-4b3e-9a60-0c9b5e0c7c11',
        timestamp: 1_736_929_800,
        correlationId: '5b0f8c1a-1b1e-4c59-8a7e-2f6f8f3e9d10',
        contentType: 'application/json',
        contentEncoding: 'utf-8',
        type: 'task_submit',
        appId: 'lab',
      };
      const headers = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
      await transport.publish(stage.command('poison', { ...properties, headers }));
      (await inbox.next()).reject();
      const dead = await stage.consume(transport, deadLetterQueue(queue), { settle: 'ack' });
      const letter = await dead.next();
      assert.equal(text(letter), 'poison');
      const { userId, headers: stamped, ...kept } = letter.properties;
      assert.deepEqual(kept, properties);
      // A broker may add its own account of the death beside our headers.
      assert.equal(stamped?.traceparent, headers.traceparent);
      assert.equal(userId, transport.login);
    },
  },
  {
    name: 'keeps the order of rejected messages and goes on with the others',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 2 });
      const dead = await stage.consume(transport, deadLetterQueue(stage.commands()), { settle: 'ack' });
      await stage.send(transport, ...series(6));
      for (const index of [0, 1, 2, 3, 4, 5]) {
        const delivery = await inbox.next();
        if (index % 2 === 0) delivery.reject();
        else delivery.ack();
      }
      assert.deepEqual(texts(await dead.take(3)), ['m1', 'm3', 'm5']);
    },
  },
  {
    name: 'dead-letters a message that came back twenty times',
    verifies: ['HCP-007'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 1 });
      const dead = await stage.consume(transport, deadLetterQueue(stage.commands()), { settle: 'ack' });
      await stage.send(transport, 'poison', 'fine');
      let tries = 0;
      let delivery = await inbox.next();
      for (; text(delivery) === 'poison'; delivery = await inbox.next()) {
        assert.equal(delivery.attempts, tries++);
        delivery.retry();
      }
      delivery.ack();
      assert.equal(text(delivery), 'fine');
      assert.equal(tries, 21, 'the first delivery and twenty more');
      assert.equal(text(await dead.next()), 'poison');
    },
  },
  {
    name: 'does not let a message that always makes the handler throw block the queue',
    verifies: ['HCP-007'],
    async play(stage) {
      const transport = await stage.open();
      const good: string[] = [];
      const { promise: done, resolve: tellDone } = Promise.withResolvers<void>();
      const handler = async (delivery: Delivery) => {
        if (text(delivery) === 'poison') throw new Error('cannot digest this');
        delivery.ack();
        if (good.push(text(delivery)) === 10) tellDone();
      };
      await transport.consume(stage.commands(), handler, { prefetch: 3 });
      const dead = await stage.consume(transport, deadLetterQueue(stage.commands()), { settle: 'ack' });
      await stage.send(transport, ...series(5), 'poison', ...series(5, 'n'));
      await stage.within('the good messages', done);
      assert.equal(text(await dead.next()), 'poison');
      assert.deepEqual(good.toSorted(), [...series(5), ...series(5, 'n')]);
    },
  },
  {
    name: 'forgets a rejected message where the queue has no dead-letter queue',
    async play(stage) {
      const transport = await stage.open();
      const queue = stage.commands({ profile: 'spec' });
      const inbox = await stage.consume(transport, queue, { prefetch: 1 });
      await stage.send(transport, 'unwanted', 'wanted');
      (await inbox.next()).reject();
      assert.deepEqual(await inbox.ack(1), ['wanted']);
      await inbox.close();
      assert.deepEqual(await stage.drain(transport, queue), []);
    },
  },
  {
    name: 'keeps the dead letters of a queue that is removed',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands());
      await stage.send(transport, 'poison');
      (await inbox.next()).reject();
      const dead = await stage.consume(transport, deadLetterQueue(stage.commands()));
      await dead.next();
      await dead.close();
      await inbox.close();
      await transport.remove(stage.commands());
      const again = await stage.consume(transport, deadLetterQueue(stage.commands()), { settle: 'ack' });
      assert.equal(text(await again.next()), 'poison');
    },
  },
];
