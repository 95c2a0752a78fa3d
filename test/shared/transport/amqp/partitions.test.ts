import { describe, expect, it } from 'vitest';
import { unsupportedType } from '../../../../shared/transport/amqp/topology-rules.ts';
import { commandQueue, eventQueue, partitionQueue } from '../../../../shared/transport/topology.ts';
import { describeAmqp } from '../../../support/amqp-room.ts';

const SENTENCE =
  'Exchange hcp.hash.alpha needs exchanges of type x-consistent-hash, which this broker does not have: enable its ' +
  'plugin rabbitmq_consistent_hash_exchange (rabbitmq-plugins enable rabbitmq_consistent_hash_exchange)';

describe('the words for a missing plugin', () => {
  it.each([
    [503, "COMMAND_INVALID - unknown exchange type 'x-consistent-hash'"],
    [503, "COMMAND_INVALID - invalid exchange type 'x-consistent-hash'"],
    [406, "PRECONDITION_FAILED - unknown exchange type 'x-consistent-hash'"],
  ])('name the plugin: %i %s', (code, text) => {
    expect(unsupportedType('Exchange hcp.hash.alpha', { code, text })).toMatchObject({
      code: 'topology_unsupported',
      message: SENTENCE,
      reason: 'rabbitmq_consistent_hash_exchange',
      retryable: false,
    });
  });

  it('are not said of anything else', () => {
    const text = "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received 'topic' but …";
    expect(unsupportedType('Exchange x', { code: 406, text })).toBeUndefined();
  });
});

interface BindingRow {
  readonly source_name: string;
  readonly destination_name: string;
  readonly destination_kind: string;
  readonly routing_key: string;
}

describeAmqp('the partitions of a caller on RabbitMQ', (room) => {
  it('hang on one durable hash exchange over the correlation id, each with the same weight', async () => {
    const transport = await room.connect();
    for (const index of [0, 1]) await transport.declare(partitionQueue('alpha', index));

    const exchanges = await room.list<{ name: string }>('exchanges', 'name', 'type', 'durable', 'arguments');
    expect(exchanges.find(({ name }) => name === 'hcp.hash.alpha')).toEqual({
      name: 'hcp.hash.alpha',
      type: 'x-consistent-hash',
      durable: true,
      arguments: [['hash-property', 'longstr', 'correlation_id']],
    });
    const columns = ['source_name', 'destination_name', 'destination_kind', 'routing_key'];
    const bindings = await room.list<BindingRow>('bindings', ...columns);
    const lines = bindings
      .filter(({ source_name }) => source_name !== '')
      .map((row) => `${row.source_name} ${row.routing_key} -> ${row.destination_kind} ${row.destination_name}`);
    expect(lines.toSorted()).toEqual([
      'hcp.dead hcp.evt.alpha -> queue hcp.dead.evt.alpha',
      'hcp.events alpha.# -> exchange hcp.hash.alpha',
      'hcp.hash.alpha 1 -> queue hcp.evt.alpha.p0',
      'hcp.hash.alpha 1 -> queue hcp.evt.alpha.p1',
    ]);
  });

  it('can be declared again by anybody who spells them out the same way', async () => {
    const transport = await room.connect();
    await transport.declare(partitionQueue('again', 0));
    const raw = await room.raw();
    await raw.assertExchange('hcp.hash.again', 'x-consistent-hash', {
      durable: true,
      arguments: { 'hash-property': 'correlation_id' },
    });
    await raw.assertQueue('hcp.evt.again.p0', {
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

  it('are refused when their exchange is of another type', async () => {
    const raw = await room.raw();
    await raw.assertExchange('hcp.hash.other', 'fanout', { durable: true });
    const transport = await room.connect();
    await expect(transport.declare(partitionQueue('other', 0))).rejects.toMatchObject({
      code: 'topology_mismatch',
      message: 'Exchange hcp.hash.other exists with another type: wanted x-consistent-hash, existing fanout',
    });
  });

  it('work with an exchange that only an operator may make', async () => {
    const operator = await room.connect();
    await operator.declare(partitionQueue('guest', 0));
    const url = await room.login({ configure: '^$', write: '^$', read: '^hcp\\.evt\\.guest\\.p0$' });
    const guest = await room.connect({ url });
    await guest.consume(partitionQueue('guest', 0), () => {});
    await expect(guest.declare(partitionQueue('absent', 0))).rejects.toMatchObject({
      code: 'topology_missing',
      message: /^Exchange hcp\.hash\.absent does not exist and is not ours to declare/,
    });
    await expect(guest.retire(partitionQueue('guest', 0))).rejects.toMatchObject({
      code: 'topology_forbidden',
      message: /^Queue hcp\.evt\.guest\.p0 cannot be unbound from hcp\.hash\.guest with key 1: ACCESS_REFUSED/,
    });
  });

  it('are refused by a broker without the plugin, and the rest goes on', async () => {
    const transport = await room.connect();
    await transport.declare(eventQueue('whole'));
    const type = '<<"x-consistent-hash">>';
    // As if it had never been enabled; really disabling it takes far longer.
    await room.control.ctl('eval', `rabbit_registry:unregister(exchange, ${type}).`);
    try {
      const refused = { code: 'topology_unsupported', reason: 'rabbitmq_consistent_hash_exchange' };
      await expect(transport.declare(partitionQueue('lacking', 0))).rejects.toMatchObject(refused);
      await expect(transport.consume(partitionQueue('lacking', 0), () => {})).rejects.toMatchObject(refused);
      await transport.declare(commandQueue('alive'));
    } finally {
      const module = 'rabbit_exchange_type_consistent_hash';
      await room.control.ctl('eval', `rabbit_registry:register(exchange, ${type}, ${module}).`);
    }
    await transport.declare(partitionQueue('lacking', 0));
  });
});
