import assert from 'node:assert/strict';
import { firstAppearances, type Scenario, series, texts } from './stage.ts';

/** A real broker takes about 15 seconds to start. */
const RESTART_MS = 120_000;

export const brokerFaults: readonly Scenario[] = [
  {
    name: 'notices a link that is up but carries nothing, and gets over it',
    verifies: ['HCP-010'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { settle: 'ack' });
      await stage.send(transport, 'before');
      await inbox.takeAll(['before']);
      const statuses = stage.statuses(transport);
      const heal = await stage.suffer('freezeLinks');
      const sent = stage.publishAll(transport, series(5));
      await statuses.until('lost');
      await heal();
      await statuses.until('open');
      assert.deepEqual(new Set(await sent), new Set(['confirmed']));
      await inbox.takeAll(series(5));
      assert.deepEqual(firstAppearances(texts(inbox.arrived)), ['before', ...series(5)]);
    },
  },
  {
    name: 'loses nothing and keeps the order over a slow link',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 10, settle: 'ack' });
      const heal = await stage.suffer('slowLinks');
      const bodies = series(100);
      await stage.send(transport, ...bodies);
      await inbox.takeAll(bodies);
      await heal();
      await stage.send(transport, 'quick again');
      await inbox.takeAll(['quick again']);
      assert.deepEqual(firstAppearances(texts(inbox.arrived)), [...bodies, 'quick again']);
    },
  },
  {
    name: 'keeps what was confirmed when the broker stops, with its properties',
    verifies: ['HCP-004', 'HCP-008'],
    timeLimitMs: RESTART_MS,
    async play(stage) {
      const transport = await stage.open();
      await transport.declare(stage.commands());
      const properties = {
        messageId: '7a4f3c1e-52f4-4b3e-9a60-0c9b5e0c7c11',
        type: 'task_submit',
        headers: { traceparent: '00-1-2-01' },
      };
      for (const body of series(20)) await transport.publish(stage.command(body, properties));
      const heal = await stage.suffer('stopBroker');
      await heal();
      const inbox = await stage.consume(transport, stage.commands(), { settle: 'ack' });
      const kept = await inbox.take(20);
      assert.deepEqual(texts(kept), series(20));
      for (const { properties: found } of kept) {
        assert.equal(found.messageId, properties.messageId);
        assert.equal(found.type, properties.type);
        assert.equal(found.headers?.traceparent, properties.headers.traceparent);
      }
    },
  },
  {
    name: 'holds publishes while the broker is stopped, and goes on with everything when it is back',
    verifies: ['HCP-008', 'HCP-010'],
    timeLimitMs: RESTART_MS,
    async play(stage) {
      const transport = await stage.open();
      // Where consumers compete, a broker may hand out what waits before it has noticed that the dead ones are dead.
      const queue = stage.commands({ singleActiveConsumer: true });
      const inbox = await stage.consume(transport, queue, { prefetch: 3 });
      await stage.send(transport, ...series(5));
      await inbox.take(3);
      const statuses = stage.statuses(transport);
      const heal = await stage.suffer('stopBroker');
      const sent = stage.publishAll(transport, series(20, 'n'));
      await statuses.until('lost');
      assert.equal((await inbox.interruption()).code, 'transport_lost');
      await heal();
      await statuses.until('open');
      assert.deepEqual(new Set(await sent), new Set(['confirmed']));
      const again: string[] = [];
      while (firstAppearances(again).length < 25) again.push(...(await inbox.ack(1)));
      assert.deepEqual(firstAppearances(again), [...series(5), ...series(20, 'n')]);
    },
  },
];
