import assert from 'node:assert/strict';
import { isHcpError } from '../../shared/errors.ts';
import { newSessionId } from '../../shared/ids.ts';
import type { QueueDeclaration } from '../../shared/transport/topology.ts';
import { type Scenario, type Stage, texts } from './stage.ts';

/** Declares one queue twice, differently, and looks for the setting's name in the refusal. */
async function assertMismatch(stage: Stage, queue: QueueDeclaration, change: Partial<QueueDeclaration>): Promise<void> {
  const transport = await stage.open();
  await transport.declare(queue);
  const [setting] = Object.keys(change);
  await assert.rejects(stage.within('the refusal', transport.declare({ ...queue, ...change })), (error) => {
    assert.ok(isHcpError(error, 'topology_mismatch'), String(error));
    assert.ok(`${error.reason} ${error.message}`.includes(String(setting)), `names ${setting}: ${error.message}`);
    assert.ok(error.message.includes(queue.name), `names the queue: ${error.message}`);
    return true;
  });
  const published = await stage.within('a publish after the refusal', transport.publish(stage.command('still alive')));
  assert.equal(published, 'confirmed');
}

export const declaring: readonly Scenario[] = [
  {
    name: 'declares a queue again without harm to what is in it',
    verifies: ['HCP-003'],
    async play(stage) {
      const [here, there] = [await stage.open(), await stage.open()];
      await here.declare(stage.commands());
      await stage.send(here, 'm1');
      await here.declare(stage.commands());
      await Promise.all([there.declare(stage.commands()), there.declare(stage.commands())]);
      assert.deepEqual(await stage.drain(there), ['m1']);
    },
  },
  {
    name: 'declares what it consumes',
    verifies: ['HCP-003'],
    async play(stage) {
      const transport = await stage.open();
      const inbox = await stage.consume(transport, stage.commands());
      await stage.send(transport, 'm1');
      assert.deepEqual(texts([await inbox.next()]), ['m1']);
    },
  },
  {
    name: 'adds the bindings of a later declaration',
    async play(stage) {
      const transport = await stage.open();
      const [first, second] = [newSessionId(), newSessionId()];
      const queue = stage.session(first);
      await transport.declare(queue);
      const bindings = [...queue.bindings, ...stage.session(second).bindings];
      await transport.declare({ ...queue, bindings });
      const inbox = await stage.consume(transport, queue);
      await transport.publish(stage.event('one', first));
      await transport.publish(stage.event('two', second));
      assert.deepEqual(texts(await inbox.take(2)), ['one', 'two']);
    },
  },
  {
    name: 'refuses to declare a queue with another length limit, names that, and goes on',
    verifies: ['HCP-003'],
    play: (stage) => assertMismatch(stage, stage.commands({ maxLength: 10 }), { maxLength: 20 }),
  },
  {
    name: 'refuses to declare a queue with another number of active consumers, names that, and goes on',
    verifies: ['HCP-003'],
    play: (stage) => assertMismatch(stage, stage.commands(), { singleActiveConsumer: true }),
  },
  {
    name: 'refuses to declare a queue with another life span of messages, names that, and goes on',
    verifies: ['HCP-003'],
    play: (stage) => assertMismatch(stage, stage.commands(), { messageTtlMs: 3_600_000 }),
  },
  {
    name: 'refuses to consume a queue that exists with other settings',
    async play(stage) {
      const transport = await stage.open();
      await transport.declare(stage.commands());
      const other = { ...stage.commands(), maxLength: 5 };
      await assert.rejects(
        stage.within(
          'the refusal',
          transport.consume(other, () => {}),
        ),
        (error) => isHcpError(error, 'topology_mismatch'),
      );
      assert.deepEqual(await stage.drain(transport), []);
    },
  },
  {
    name: 'keeps the settings of the literal profile with its queue',
    verifies: ['HCP-003'],
    async play(stage) {
      const transport = await stage.open();
      const spec = stage.events({ profile: 'spec' });
      await transport.declare(spec);
      await transport.declare(spec);
      const inbox = await stage.consume(transport, spec, { settle: 'ack' });
      await transport.publish(stage.event('m1'));
      assert.deepEqual(texts([await inbox.next()]), ['m1']);
      const { messageTtlMs: _, ...forever } = spec;
      await assert.rejects(
        stage.within('the refusal', transport.declare({ ...forever, messageTtlMs: undefined })),
        (error) => isHcpError(error, 'topology_mismatch'),
      );
    },
  },
  {
    name: 'removes a queue with its messages, also when there is none',
    async play(stage) {
      const transport = await stage.open();
      await transport.remove(stage.commands());
      await transport.declare(stage.commands());
      await stage.send(transport, 'm1');
      await transport.remove(stage.commands());
      await transport.remove(stage.commands());
      await transport.declare(stage.commands());
      assert.deepEqual(await stage.drain(transport), []);
    },
  },
];
