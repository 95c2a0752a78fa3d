import assert from 'node:assert/strict';
import { newSessionId } from '../../shared/ids.ts';
import { commandQueue, commandRoute, eventQueue, type QueueDeclaration } from '../../shared/transport/topology.ts';
import { type Scenario, type Stage, texts } from './stage.ts';

/** An event queue of the case's caller with a binding of its own. */
function bound(stage: Stage, name: string, ...routingKeys: string[]): QueueDeclaration {
  const queue = stage.events();
  return stage.track({
    ...queue,
    name: `${queue.name}.${name}`,
    bindings: routingKeys.map((routingKey) => ({ exchange: 'hcp.events', routingKey })),
  });
}

export const routing: readonly Scenario[] = [
  {
    name: 'delivers a command to the callee it names and to no other',
    verifies: ['HCP-003'],
    async play(stage) {
      const transport = await stage.open();
      const longer = stage.track(commandQueue(`${stage.calleeId}x`));
      const mine = await stage.consume(transport, stage.commands());
      const others = await stage.consume(transport, longer);
      await stage.send(transport, 'for me');
      await transport.publish({ ...stage.command('for the other'), route: commandRoute(`${stage.calleeId}x`) });
      assert.deepEqual(texts([await mine.next(), await others.next()]), ['for me', 'for the other']);
      await stage.roundTrips(transport);
      assert.deepEqual([mine.untaken, others.untaken], [0, 0]);
    },
  },
  {
    name: 'delivers every event of every session to its caller',
    verifies: ['HCP-003'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.events());
      await transport.publish(stage.event('accepted', newSessionId(), 'task_accepted'));
      await transport.publish(stage.event('progress', newSessionId(), 'event'));
      await transport.publish(stage.event('done', newSessionId(), 'task_completed'));
      assert.deepEqual(texts(await inbox.take(3)), ['accepted', 'progress', 'done']);
    },
  },
  {
    name: 'delivers an event that has no session yet',
    verifies: ['HCP-003'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, bound(stage, 'rejected', `${stage.callerId}.*.task_rejected`));
      assert.equal(await transport.publish(stage.event('no', null, 'task_rejected')), 'confirmed');
      assert.equal((await inbox.next()).route.routingKey, `${stage.callerId}.none.task_rejected`);
    },
  },
  {
    name: 'lets a binding select one type of event across sessions',
    verifies: ['HCP-003'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, bound(stage, 'completed', `${stage.callerId}.*.task_completed`));
      const progress = await transport.publish(stage.event('progress', newSessionId(), 'event'));
      await transport.publish(stage.event('done 1', newSessionId(), 'task_completed'));
      await transport.publish(stage.event('done 2', newSessionId(), 'task_completed'));
      assert.equal(progress, 'unroutable');
      assert.deepEqual(texts(await inbox.take(2)), ['done 1', 'done 2']);
    },
  },
  {
    name: 'gives a session queue the events of its session only',
    verifies: ['HCP-003'],
    async play(stage) {
      const transport = await stage.open();
      const [mine, other] = [newSessionId(), newSessionId()];
      const inbox = await stage.consume(transport, stage.session(mine));
      assert.equal(await transport.publish(stage.event('theirs', other)), 'unroutable');
      await transport.publish(stage.event('progress', mine, 'event'));
      await transport.publish(stage.event('done', mine, 'task_completed'));
      assert.deepEqual(texts(await inbox.take(2)), ['progress', 'done']);
    },
  },
  {
    name: 'copies an event to every queue that matches, once to each',
    async play(stage) {
      const transport = await stage.open();
      const session = newSessionId();
      const all = await stage.consume(transport, stage.events());
      const own = await stage.consume(transport, stage.session(session));
      const twice = await stage.consume(
        transport,
        bound(stage, 'twice', `${stage.callerId}.#`, `${stage.callerId}.*.event`),
      );
      await transport.publish(stage.event('shared', session));
      assert.deepEqual(texts([await all.next(), await own.next(), await twice.next()]), ['shared', 'shared', 'shared']);
      await stage.roundTrips(transport);
      assert.deepEqual([all.untaken, own.untaken, twice.untaken], [0, 0, 0]);
    },
  },
  {
    name: 'never shows a caller the events of one whose id starts with its own',
    verifies: ['HCP-003'],
    async play(stage) {
      const transport = await stage.open();
      const longerId = `${stage.callerId}b`;
      const longer = await stage.consume(transport, stage.track(eventQueue(longerId)));
      const inbox = await stage.consume(transport, stage.events());
      await transport.publish(stage.event('secret', newSessionId(), 'event', longerId));
      await transport.publish(stage.event('mine', newSessionId()));
      assert.deepEqual(texts([await longer.next(), await inbox.next()]), ['secret', 'mine']);
      await stage.roundTrips(transport);
      assert.deepEqual([longer.untaken, inbox.untaken], [0, 0]);
    },
  },
  {
    name: 'tells the sender when no queue wants the message, and confirms once one does',
    verifies: ['HCP-008'],
    async play(stage) {
      const transport = await stage.open();
      assert.equal(await transport.publish(stage.command('early')), 'unroutable');
      await transport.declare(stage.commands());
      assert.equal(await transport.publish(stage.command('late')), 'confirmed');
      await transport.remove(stage.commands());
      assert.equal(await transport.publish(stage.command('too late')), 'unroutable');
    },
  },
  {
    name: 'hands over the exchange and routing key a message was sent to',
    async play(stage) {
      const transport = await stage.open();
      const session = newSessionId();
      const commands = await stage.consume(transport, stage.commands());
      const events = await stage.consume(transport, stage.events());
      await stage.send(transport, 'go');
      await transport.publish(stage.event('done', session, 'task_completed'));
      assert.deepEqual((await commands.next()).route, { exchange: 'hcp.commands', routingKey: stage.calleeId });
      assert.deepEqual((await events.next()).route, {
        exchange: 'hcp.events',
        routingKey: `${stage.callerId}.${session}.task_completed`,
      });
    },
  },
];
