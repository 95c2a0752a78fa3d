import assert from 'node:assert/strict';
import { commandRoute } from '../../shared/transport/topology.ts';
import { firstAppearances, type Scenario, series, texts } from './stage.ts';

export const publishing: readonly Scenario[] = [
  {
    name: 'delivers many publishes in flight in the order of the calls',
    verifies: ['HCP-008'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 100, settle: 'ack' });
      const bodies = series(1000);
      await stage.send(transport, ...bodies);
      assert.deepEqual(texts(await inbox.take(1000)), bodies);
    },
  },
  {
    name: 'gives each publish in flight its own answer',
    verifies: ['HCP-008'],
    async play(stage) {
      const transport = await stage.open();
      await transport.declare(stage.commands());
      const nobody = { ...stage.command('lost'), route: commandRoute(`${stage.calleeId}-nobody`) };
      const publishes = series(60).map((body, index) =>
        transport.publish(index % 3 === 1 ? nobody : stage.command(body)),
      );
      const outcomes = await stage.within('60 answers', Promise.all(publishes));
      assert.deepEqual(
        outcomes,
        series(60).map((_, index) => (index % 3 === 1 ? 'unroutable' : 'confirmed')),
      );
    },
  },
  {
    name: 'confirms more publishes than fit into the window, in order',
    verifies: ['HCP-008'],
    async play(stage) {
      const transport = await stage.open({ window: 3 });
      const bodies = series(50);
      const inbox = await stage.consume(transport, stage.commands(), { prefetch: 50, settle: 'ack' });
      const confirmed: string[] = [];
      const publishes = bodies.map(async (body) => {
        await transport.publish(stage.command(body));
        confirmed.push(body);
      });
      await stage.within('50 confirms through a window of 3', Promise.all(publishes));
      assert.deepEqual(texts(await inbox.take(50)), bodies);
      // One answer may settle several publishes at once, but it never overtakes a whole window.
      for (const [index, body] of confirmed.entries()) assert.ok(Math.abs(bodies.indexOf(body) - index) < 3, body);
    },
  },
  {
    name: 'keeps what is confirmed until a consumer comes',
    verifies: ['HCP-004', 'HCP-008'],
    async play(stage) {
      const sender = await stage.open();
      await sender.declare(stage.commands());
      await stage.send(sender, 'm1', 'm2');
      await sender.close();
      const receiver = await stage.open();
      const inbox = await stage.consume(receiver, stage.commands());
      assert.deepEqual(texts(await inbox.take(2)), ['m1', 'm2']);
    },
  },
  {
    name: 'keeps the order of each sender when several send at once',
    async play(stage) {
      const [first, second] = [await stage.open(), await stage.open()];
      const inbox = await stage.consume(first, stage.commands(), { prefetch: 50, settle: 'ack' });
      const [firsts, seconds] = [series(100, 'a'), series(100, 'b')];
      await Promise.all([stage.send(first, ...firsts), stage.send(second, ...seconds)]);
      const arrived = texts(await inbox.take(200));
      assert.deepEqual(
        arrived.filter((body) => body.startsWith('a')),
        firsts,
      );
      assert.deepEqual(
        arrived.filter((body) => body.startsWith('b')),
        seconds,
      );
    },
  },
  {
    name: 'does not send at all when the signal is already aborted',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { settle: 'ack' });
      const reason = new Error('changed my mind');
      const publish = transport.publish(stage.command('never'), { signal: AbortSignal.abort(reason) });
      await assert.rejects(stage.within('the refusal', publish), (error) => error === reason);
      await stage.send(transport, 'next');
      assert.deepEqual(texts([await inbox.next()]), ['next']);
    },
  },
  {
    name: 'lets go of a publish whose signal is aborted while the link is dead, and only of that one',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands(), { settle: 'ack' });
      const heal = await stage.suffer('freezeLinks');
      const controller = new AbortController();
      const reason = new Error('out of patience');
      const abandoned = transport.publish(stage.command('abandoned'), { signal: controller.signal });
      const kept = transport.publish(stage.command('kept'));
      controller.abort(reason);
      await assert.rejects(stage.within('the abort', abandoned), (error) => error === reason);
      await heal();
      assert.equal(await stage.within('the other publish', kept), 'confirmed');
      await inbox.takeAll(['kept']);
      // Its outcome is unknown: it may have gone out before the abort, but then in its place.
      const arrived = firstAppearances(texts(inbox.arrived)).filter((body) => body !== 'abandoned');
      assert.deepEqual(arrived, ['kept']);
    },
  },
];
