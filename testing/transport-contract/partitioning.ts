import assert from 'node:assert/strict';
import { newSessionId } from '../../shared/ids.ts';
import { deadLetterQueue, eventQueue, type QueueDeclaration } from '../../shared/transport/topology.ts';
import { Lanes, partition, sendEvents, sessionEvent } from './lanes.ts';
import { type Scenario, type Stage, series, text, texts } from './stage.ts';

function partitions(stage: Stage, count: number): QueueDeclaration[] {
  return Array.from({ length: count }, (_, index) => partition(stage, index));
}

/** `m1 … m3` of each session, as `session/m1`, sessions interleaved. */
function events(stage: Stage, sessions: readonly string[], prefix = 'm') {
  return series(3, prefix).flatMap((body) =>
    sessions.map((session) => sessionEvent(stage, `${session}/${body}`, session)),
  );
}

function sessionIds(count: number): string[] {
  return Array.from({ length: count }, newSessionId);
}

function assertTogether(lanes: Lanes, sessions: readonly string[], bodies: readonly string[]): void {
  for (const session of sessions) {
    const own = lanes.arrivals.filter(({ body }) => body.startsWith(session));
    assert.deepEqual(
      own.map(({ body }) => body),
      bodies.map((body) => `${session}/${body}`),
      'a session keeps its order',
    );
    assert.equal(new Set(own.map(({ queue }) => queue)).size, 1, 'a session stays in one partition');
  }
}

export const partitioning: readonly Scenario[] = [
  {
    name: 'gives every event to exactly one partition, and those of a session to the same one, in order',
    async play(stage) {
      const transport = await stage.open();
      const lanes = await new Lanes(stage).open(transport, ...partitions(stage, 3));
      const sessions = sessionIds(40);
      const outcomes = await sendEvents(stage, transport, events(stage, sessions));
      assert.deepEqual(new Set(outcomes), new Set(['confirmed']));
      await lanes.settled(transport, 120);
      assert.equal(lanes.arrivals.length, 120);
      assertTogether(lanes, sessions, series(3));
    },
  },
  {
    name: 'spreads many sessions over the partitions',
    async play(stage) {
      const transport = await stage.open();
      const queues = partitions(stage, 2);
      const lanes = await new Lanes(stage).open(transport, ...queues);
      // That all of them meet in one partition by chance: once in 2^63 runs.
      const messages = sessionIds(64).map((session) => sessionEvent(stage, session, session));
      await sendEvents(stage, transport, messages);
      await lanes.settled(transport, 64);
      assert.deepEqual(
        lanes.usedBy(),
        queues.map(({ name }) => name),
      );
    },
  },
  {
    name: 'gives events without a session to exactly one partition',
    async play(stage) {
      const transport = await stage.open();
      const lanes = await new Lanes(stage).open(transport, ...partitions(stage, 3));
      const messages = series(10).map((body) => sessionEvent(stage, body, null));
      assert.deepEqual(new Set(await sendEvents(stage, transport, messages)), new Set(['confirmed']));
      await lanes.settled(transport, 10);
      assert.deepEqual(lanes.bodies.toSorted(), series(10).toSorted());
    },
  },
  {
    name: 'hands over the exchange and routing key of an event that came through a partition',
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, partition(stage, 0));
      const session = newSessionId();
      await transport.publish(sessionEvent(stage, 'm1', session));
      const { route, properties } = await inbox.next();
      assert.deepEqual(route, { exchange: 'hcp.events', routingKey: `${stage.callerId}.${session}.event` });
      assert.equal(properties.correlationId, session);
    },
  },
  {
    name: 'declares partitions again without harm to what is in them or to who gets what',
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      const queues = partitions(stage, 3);
      for (const queue of queues) await here.declare(queue);
      const sessions = sessionIds(20);
      await sendEvents(stage, here, events(stage, sessions));
      await Promise.all([...queues, ...queues].map((queue) => there.declare(queue)));
      await sendEvents(stage, here, events(stage, sessions, 'n'));
      const lanes = await new Lanes(stage).open(there, ...queues);
      await lanes.settled(there, 120);
      assert.equal(lanes.arrivals.length, 120);
      assertTogether(lanes, sessions, [...series(3), ...series(3, 'n')]);
    },
  },
  {
    name: 'loses and doubles nothing when a partition is added',
    async play(stage) {
      const transport = await stage.open();
      const [first, second] = [partition(stage, 0), partition(stage, 1)];
      const lanes = await new Lanes(stage).open(transport, first);
      const sessions = sessionIds(64);
      const messages = [events(stage, sessions, 'before'), events(stage, sessions, 'meanwhile')];
      await sendEvents(stage, transport, messages[0] ?? []);
      await Promise.all([sendEvents(stage, transport, messages[1] ?? []), lanes.open(transport, second)]);
      const after = events(stage, sessions, 'after');
      await sendEvents(stage, transport, after);
      await lanes.settled(transport, 576);
      assert.deepEqual(lanes.bodies.toSorted(), [...messages.flat(), ...after].map(bodyOf).toSorted());
      assert.deepEqual(
        lanes.usedBy(({ body }) => body.includes('after')),
        [first.name, second.name],
      );
    },
  },
  {
    name: 'gives a partition to one consumer at a time, and to the next when that one closes',
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      const queue = partition(stage, 0);
      const first = await stage.consume(here, queue, { settle: 'ack' });
      const second = await stage.consume(there, queue, { settle: 'ack' });
      const session = newSessionId();
      for (const body of series(5)) await here.publish(sessionEvent(stage, body, session));
      assert.deepEqual(texts(await first.take(5)), series(5));
      assert.equal(second.arrived.length, 0);
      await first.close();
      await here.publish(sessionEvent(stage, 'm6', session));
      assert.equal(text(await second.next()), 'm6');
    },
  },
  {
    name: 'keeps what any partition rejects in the dead-letter queue of the caller',
    async play(stage) {
      const transport = await stage.open();
      for (const queue of partitions(stage, 2)) await transport.consume(queue, (delivery) => delivery.reject());
      const grave = await stage.consume(transport, deadLetterQueue(eventQueue(stage.callerId)), { settle: 'ack' });
      const bodies = series(16);
      await sendEvents(
        stage,
        transport,
        bodies.map((body) => sessionEvent(stage, body, newSessionId())),
      );
      assert.deepEqual(texts(await grave.take(16)).toSorted(), bodies.toSorted());
    },
  },
  {
    name: 'leaves the queues and partitions of other callers alone',
    async play(stage) {
      const transport = await stage.open();
      const [plainId, otherId] = [`${stage.callerId}b`, `${stage.callerId}c`];
      const plain = stage.track(eventQueue(plainId));
      const other = partition(stage, 0, otherId);
      const mine = partitions(stage, 2);
      const lanes = await new Lanes(stage).open(transport, plain, other, ...mine);
      const session = newSessionId(); // the same everywhere: the caller alone must decide
      for (const callerId of [plainId, otherId, stage.callerId]) {
        await transport.publish(sessionEvent(stage, callerId, session, callerId));
      }
      await transport.remove(mine[1] ?? other);
      await transport.publish(sessionEvent(stage, otherId, session, otherId));
      await lanes.settled(transport, 4);
      const of = (id: string) => lanes.usedBy(({ body }) => body === id);
      assert.equal(lanes.arrivals.length, 4);
      assert.deepEqual([of(plainId), of(otherId)], [[plain.name], [other.name]]);
      assert.equal(of(stage.callerId).length, 1);
    },
  },
  {
    name: 'goes on with the same partitions when the broker comes back',
    timeLimitMs: 120_000,
    async play(stage) {
      const transport = await stage.open();
      const lanes = await new Lanes(stage).open(transport, ...partitions(stage, 3));
      const statuses = stage.statuses(transport);
      const heal = await stage.suffer('stopBroker');
      await heal();
      await statuses.until('open');
      // Only now: where a session belongs may change with the broker's memory of the partitions, and not after that.
      const sessions = sessionIds(40);
      await sendEvents(stage, transport, events(stage, sessions));
      await lanes.settled(transport, 120);
      assert.equal(lanes.arrivals.length, 120);
      assertTogether(lanes, sessions, series(3));
    },
  },
];

function bodyOf({ body }: { readonly body: Uint8Array }): string {
  return new TextDecoder().decode(body);
}
