import assert from 'node:assert/strict';
import { newSessionId } from '../../shared/ids.ts';
import type { QueueDeclaration } from '../../shared/transport/topology.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { Lanes, partition, sendEvents, sessionEvent } from './lanes.ts';
import { type Scenario, type Stage, series } from './stage.ts';

/** As a caller does it: again and again, as a broker may need a moment to notice that a consumer is gone. */
async function retired(stage: Stage, transport: Transport, queue: QueueDeclaration): Promise<string> {
  const retire = async () => {
    for (;;) {
      const outcome = await transport.retire(queue);
      if (outcome !== 'waiting') return outcome;
    }
  };
  return stage.within(`${queue.name} to be retired`, retire());
}

/** One event for each of many sessions: `{prefix}1 …`. */
function crowd(stage: Stage, count: number, prefix: string) {
  return series(count, prefix).map((body) => sessionEvent(stage, body, newSessionId()));
}

function unbound(queue: QueueDeclaration): QueueDeclaration {
  return { ...queue, bindings: [] };
}

/** Replaces `old` by `next` while events come, and answers what arrived in all. */
async function replace(stage: Stage, old: QueueDeclaration[], next: QueueDeclaration[]): Promise<string[]> {
  const transport = await stage.open();
  for (const queue of old) await transport.declare(queue);
  await sendEvents(stage, transport, crowd(stage, 32, 'before'));
  // The new ones first: a moment in which events go to both is repaired by their sequence, one with neither is not.
  for (const queue of next) await transport.declare(queue);
  for (const queue of old) assert.equal(await transport.retire(queue), 'waiting');
  await sendEvents(stage, transport, crowd(stage, 32, 'after'));
  const lanes = await new Lanes(stage).open(transport, ...old.map(unbound), ...next);
  await lanes.settled(transport, 64);
  for (const queue of old) {
    await lanes.close(queue);
    assert.equal(await retired(stage, transport, queue), 'removed');
    assert.equal(await transport.retire(queue), 'absent');
  }
  return lanes.bodies.toSorted();
}

const ALL = [...series(32, 'before'), ...series(32, 'after')].toSorted();

export const retiring: readonly Scenario[] = [
  {
    name: 'retires an event queue for partitions without losing or doubling what waits in it',
    async play(stage) {
      assert.deepEqual(await replace(stage, [stage.events()], [partition(stage, 0), partition(stage, 1)]), ALL);
    },
  },
  {
    name: 'retires partitions for an event queue without losing or doubling what waits in them',
    async play(stage) {
      assert.deepEqual(await replace(stage, [partition(stage, 0), partition(stage, 1)], [stage.events()]), ALL);
    },
  },
  {
    name: 'retires one of several partitions, and the others get all that is new',
    async play(stage) {
      const transport = await stage.open();
      const [first, second] = [partition(stage, 0), partition(stage, 1)];
      for (const queue of [first, second]) await transport.declare(queue);
      await sendEvents(stage, transport, crowd(stage, 64, 'before'));
      assert.equal(await transport.retire(second), 'waiting');
      const outcomes = await sendEvents(stage, transport, crowd(stage, 64, 'after'));
      assert.deepEqual(new Set(outcomes), new Set(['confirmed']));
      const lanes = await new Lanes(stage).open(transport, first, unbound(second));
      await lanes.settled(transport, 128);
      await lanes.close(second);
      assert.equal(await retired(stage, transport, second), 'removed');
      assert.deepEqual(lanes.bodies.toSorted(), [...series(64, 'before'), ...series(64, 'after')].toSorted());
      assert.deepEqual(
        lanes.usedBy(({ body }) => body.startsWith('after')),
        [first.name],
      );
    },
  },
  {
    name: 'leaves a retired queue to whoever consumes it, empty or not',
    async play(stage) {
      const transport = await stage.open();
      const queue = partition(stage, 0);
      const inbox = await stage.consume(transport, unbound(queue));
      await transport.declare(queue);
      await transport.publish(sessionEvent(stage, 'held', newSessionId()));
      const held = await inbox.next();
      assert.equal(await transport.retire(queue), 'waiting');
      held.ack();
      await stage.roundTrips(transport);
      assert.equal(await transport.retire(queue), 'waiting');
      await inbox.close();
      assert.equal(await retired(stage, transport, queue), 'removed');
    },
  },
  {
    name: 'keeps a retired queue whose consumer has just given back what it held',
    async play(stage) {
      const transport = await stage.open();
      const queue = partition(stage, 0);
      await transport.declare(queue);
      await sendEvents(stage, transport, crowd(stage, 10, 'm'));
      const inbox = await stage.consume(transport, unbound(queue), { prefetch: 10 });
      await inbox.take(10);
      await inbox.close();
      assert.equal(await transport.retire(queue), 'waiting');
      const lanes = await new Lanes(stage).open(transport, unbound(queue));
      await lanes.settled(transport, 10);
      assert.deepEqual(lanes.bodies.toSorted(), series(10).toSorted());
    },
  },
  {
    name: 'loses nothing that was on its way into a queue when it was retired',
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      const [first, second] = [partition(stage, 0), partition(stage, 1)];
      const lanes = await new Lanes(stage).open(here, first);
      await here.declare(second);
      const messages = crowd(stage, 200, 'm');
      const [outcomes, retirement] = await Promise.all([
        sendEvents(stage, there, messages),
        stage.within('the retirement', here.retire(second)),
      ]);
      assert.deepEqual(new Set(outcomes), new Set(['confirmed']));
      if (retirement === 'waiting') await lanes.open(here, unbound(second));
      await lanes.settled(here, 200);
      assert.deepEqual(lanes.bodies.toSorted(), series(200).toSorted());
    },
  },
  {
    name: 'does not bind a retired queue again when the link comes back',
    async play(stage) {
      const transport = await stage.open();
      const queue = stage.events();
      await transport.declare(queue);
      await transport.publish(stage.event('m1'));
      assert.equal(await transport.retire(queue), 'waiting');
      const lanes = await new Lanes(stage).open(transport, unbound(queue));
      const statuses = stage.statuses(transport);
      await stage.cutLinks();
      await statuses.until('lost');
      await statuses.until('open');
      await stage.roundTrips(transport);
      assert.equal(await transport.publish(stage.event('m2')), 'unroutable');
      assert.deepEqual(new Set(lanes.bodies), new Set(['m1']));
    },
  },
  {
    name: 'has no queue for an event when the last partition is gone, until there is one again',
    async play(stage) {
      const transport = await stage.open();
      const queue = partition(stage, 0);
      const publish = () => transport.publish(sessionEvent(stage, 'm', newSessionId()));
      await transport.declare(queue);
      assert.equal(await transport.retire(queue), 'removed');
      assert.equal(await publish(), 'unroutable');
      await transport.declare(queue);
      assert.equal(await publish(), 'confirmed');
      await transport.remove(queue);
      assert.equal(await publish(), 'unroutable');
      assert.equal(await transport.retire(queue), 'absent');
    },
  },
];
