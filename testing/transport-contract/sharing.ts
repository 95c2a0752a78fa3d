import assert from 'node:assert/strict';
import { type Scenario, series, text, texts } from './stage.ts';

export const sharing: readonly Scenario[] = [
  {
    name: 'shares a queue between competing consumers',
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      const first = await stage.consume(here, stage.commands(), { prefetch: 1 });
      const second = await stage.consume(there, stage.commands(), { prefetch: 1 });
      await stage.send(here, 'm1', 'm2');
      assert.deepEqual(texts([await first.next(), await second.next()]).toSorted(), ['m1', 'm2']);
    },
  },
  {
    name: 'gives each message to one of the competing consumers only',
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      const first = await stage.consume(here, stage.commands(), { prefetch: 2, settle: 'ack' });
      const second = await stage.consume(there, stage.commands(), { prefetch: 2, settle: 'ack' });
      await stage.send(here, ...series(100));
      await first.close();
      await second.close();
      const rest = await stage.drain(here);
      const all = [...texts(first.arrived), ...texts(second.arrived), ...rest];
      assert.deepEqual(all.toSorted(), series(100).toSorted());
    },
  },
  {
    name: 'gives what one competing consumer leaves behind to the other',
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      const first = await stage.consume(here, stage.commands(), { prefetch: 2 });
      await stage.send(here, 'm1', 'm2');
      await first.take(2);
      const second = await stage.consume(there, stage.commands(), { prefetch: 2 });
      await here.close();
      const inherited = await second.take(2);
      assert.deepEqual(texts(inherited), ['m1', 'm2']);
      assert.ok(inherited.every((delivery) => delivery.redelivered));
    },
  },
  {
    name: 'gives a queue with a single active consumer to one, and to the next when that one closes',
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      const first = await stage.consume(here, stage.events(), { prefetch: 2, settle: 'ack' });
      const second = await stage.consume(there, stage.events(), { prefetch: 2, settle: 'ack' });
      for (const body of series(10)) await here.publish(stage.event(body));
      assert.deepEqual(texts(await first.take(10)), series(10));
      assert.equal(second.arrived.length, 0);
      await first.close();
      for (const body of series(3, 'n')) await here.publish(stage.event(body));
      assert.deepEqual(texts(await second.take(3)), series(3, 'n'));
      assert.equal(first.untaken, 0);
    },
  },
  {
    name: 'hands the unsettled messages of a gone active consumer to the next in their order',
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      const first = await stage.consume(here, stage.events(), { prefetch: 3 });
      const second = await stage.consume(there, stage.events(), { prefetch: 10, settle: 'ack' });
      for (const body of series(6)) await there.publish(stage.event(body));
      const [m1] = await first.take(3);
      m1?.ack();
      assert.equal(text(await first.next()), 'm4');
      await here.close();
      assert.deepEqual(texts(await second.take(5)), ['m2', 'm3', 'm4', 'm5', 'm6']);
    },
  },
];
