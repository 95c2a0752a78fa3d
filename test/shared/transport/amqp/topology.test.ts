import { expect, it } from 'vitest';
import { commandQueue, eventQueue, sessionQueue } from '../../../../shared/transport/topology.ts';
import { describeAmqp } from '../../../support/amqp-room.ts';
import { S1 } from '../../../support/messages.ts';
import { verifies } from '../../../support/verifies.ts';

interface QueueRow {
  readonly name: string;
  readonly [property: string]: unknown;
}

interface BindingRow {
  readonly source_name: string;
  readonly destination_name: string;
  readonly routing_key: string;
}

describeAmqp('the topology on RabbitMQ', (room) => {
  verifies(
    'HCP-003',
    'has the three exchanges as soon as a transport is open, durable and without arguments',
    async () => {
      await room.connect();
      const columns = ['name', 'type', 'durable', 'auto_delete', 'internal', 'arguments'];
      const exchanges = await room.list<QueueRow>('exchanges', ...columns);
      const ours = { durable: true, auto_delete: false, internal: false, arguments: [] };
      expect(exchanges.filter(({ name }) => name.startsWith('hcp.')).toSorted(byName)).toEqual([
        { name: 'hcp.commands', type: 'direct', ...ours },
        { name: 'hcp.dead', type: 'direct', ...ours },
        { name: 'hcp.events', type: 'topic', ...ours },
      ]);
    },
  );

  verifies('HCP-003', 'has durable queues with these names and bindings and no others', async () => {
    const transport = await room.connect();
    await transport.declare(commandQueue('lab'));
    await transport.declare(eventQueue('alpha'));
    await transport.declare(sessionQueue('alpha', S1));
    await transport.declare(eventQueue('literal', { profile: 'spec' }));

    const queues = await room.list<QueueRow>('queues', 'name', 'durable', 'auto_delete', 'type');
    const ours = { durable: true, auto_delete: false, type: 'quorum' };
    expect(queues.toSorted(byName)).toEqual([
      { name: 'hcp.cmd.lab', ...ours },
      { name: 'hcp.dead.cmd.lab', ...ours },
      { name: 'hcp.dead.evt.alpha', ...ours },
      { name: `hcp.dead.evt.alpha.${S1}`, ...ours },
      { name: 'hcp.evt.alpha', ...ours },
      { name: `hcp.evt.alpha.${S1}`, ...ours },
      { name: 'hcp.evt.literal', ...ours },
    ]);

    const bindings = await room.list<BindingRow>('bindings', 'source_name', 'destination_name', 'routing_key');
    const lines = bindings
      .filter(({ source_name }) => source_name !== '') // every queue is bound to the nameless exchange
      .map((row) => `${row.source_name} ${row.routing_key} -> ${row.destination_name}`);
    expect(lines.toSorted()).toEqual([
      'hcp.commands lab -> hcp.cmd.lab',
      'hcp.dead hcp.cmd.lab -> hcp.dead.cmd.lab',
      'hcp.dead hcp.evt.alpha -> hcp.dead.evt.alpha',
      `hcp.dead hcp.evt.alpha.${S1} -> hcp.dead.evt.alpha.${S1}`,
      'hcp.events alpha.# -> hcp.evt.alpha',
      `hcp.events alpha.${S1}.# -> hcp.evt.alpha.${S1}`,
      'hcp.events literal.# -> hcp.evt.literal',
    ]);
  });

  verifies('HCP-003', 'can be declared again by anybody who spells it out the same way', async () => {
    const transport = await room.connect();
    await transport.declare(eventQueue('again'));
    const raw = await room.raw();
    await raw.assertExchange('hcp.commands', 'direct', { durable: true });
    await raw.assertExchange('hcp.events', 'topic', { durable: true });
    await raw.assertQueue('hcp.evt.again', {
      durable: true,
      arguments: {
        'x-queue-type': 'quorum',
        'x-delivery-limit': 20,
        'x-single-active-consumer': true,
        'x-overflow': 'reject-publish',
        'x-dead-letter-exchange': 'hcp.dead',
        'x-dead-letter-routing-key': 'hcp.evt.again',
        'x-dead-letter-strategy': 'at-least-once',
      },
    });
  });

  verifies(
    ['HCP-009', 'HCP-011'],
    'is reached over two named connections with the asked-for heartbeat, in our own vhost',
    async () => {
      await room.connect({ heartbeatSeconds: 30 });
      const connections = await room.control.ctl(
        ...['list_connections', 'vhost', 'timeout', 'client_properties', '--formatter', 'json', '--silent'],
      );
      const rows: { vhost: string; timeout: number; client_properties: unknown }[] = JSON.parse(connections);
      const ours = rows.filter(({ vhost }) => vhost === room.vhost);
      expect(ours.map(({ timeout }) => timeout)).toEqual([30, 30]);
      expect(JSON.stringify(ours)).toContain('hcp-sdk publish');
      expect(JSON.stringify(ours)).toContain('hcp-sdk consume');
    },
  );

  it('consumes with manual acks and shares its queue', async () => {
    const transport = await room.connect();
    await transport.consume(commandQueue('shared'), () => {}, { prefetch: 7 });
    const consumers = await room.list<Record<string, unknown>>(
      'consumers',
      'queue_name',
      'ack_required',
      'prefetch_count',
    );
    expect(consumers).toEqual([{ queue_name: 'hcp.cmd.shared', ack_required: true, prefetch_count: 7 }]);
    const raw = await room.raw();
    await raw.consume('hcp.cmd.shared', () => {});
  });
});

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}
