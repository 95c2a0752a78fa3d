import { describe, expect, it } from 'vitest';
import { mismatch } from '../../../../shared/transport/amqp/topology-rules.ts';
import { commandQueue, type QueueDeclaration, type QueueProfile } from '../../../../shared/transport/topology.ts';
import { describeAmqp } from '../../../support/amqp-room.ts';
import { verifies } from '../../../support/verifies.ts';

describe('the words for a conflict', () => {
  const refusal = (text: string) => ({ code: 406, text: `PRECONDITION_FAILED - ${text}` });

  it.each([
    [
      "inequivalent arg 'x-max-length' for queue 'hcp.cmd.lab' in vhost '/': received the value '20' of type 'byte' but current is the value '10' of type 'byte'",
      'Queue hcp.cmd.lab exists with another maxLength (x-max-length): wanted 20, existing 10',
      'maxLength',
    ],
    [
      "inequivalent arg 'x-message-ttl' for queue 'hcp.cmd.lab' in vhost '/': received none but current is the value '86400000' of type 'signedint'",
      'Queue hcp.cmd.lab exists with another messageTtlMs (x-message-ttl): wanted none, existing 86400000',
      'messageTtlMs',
    ],
    [
      "inequivalent arg 'durable' for queue 'hcp.cmd.lab' in vhost '/': received 'true' but current is 'false'",
      'Queue hcp.cmd.lab exists with another durable: wanted true, existing false',
      'durable',
    ],
  ])('name the setting: %s', (text, message, reason) => {
    expect(mismatch('Queue hcp.cmd.lab', refusal(text))).toMatchObject({ code: 'topology_mismatch', message, reason });
  });

  it('repeat what the broker said when it said something else', () => {
    const error = mismatch('Queue q', refusal("invalid arg 'x-foo' for queue 'q'"));
    expect(error).toMatchObject({ code: 'topology_mismatch', reason: undefined, retryable: false });
    expect(error.message).toBe(
      "Queue q cannot be declared as asked: PRECONDITION_FAILED - invalid arg 'x-foo' for queue 'q'",
    );
  });
});

describeAmqp('a queue or exchange that exists otherwise', (room) => {
  const changes: [string, QueueProfile, Partial<QueueDeclaration>][] = [
    ['deliveryLimit', 'safe', { deliveryLimit: 5 }],
    ['deadLetter', 'safe', { deadLetter: false }],
    ['overflow', 'spec', { overflow: 'reject-publish' }],
  ];
  it.each(changes)('is refused by the name of the setting: %s', async (setting, profile, change) => {
    const transport = await room.connect();
    const queue = commandQueue(`other-${setting}`, { profile });
    await transport.declare({ ...queue, ...change });
    await expect(transport.declare(queue)).rejects.toMatchObject({ code: 'topology_mismatch', reason: setting });
  });

  verifies('HCP-003', 'is refused when it is a classic queue and a quorum queue was asked for', async () => {
    const classic = await room.connect({ queueType: 'classic' });
    await classic.declare(commandQueue('other-type'));
    const quorum = await room.connect();
    await expect(quorum.declare(commandQueue('other-type'))).rejects.toMatchObject({
      code: 'topology_mismatch',
      reason: 'queueType',
      message: 'Queue hcp.cmd.other-type exists with another queueType (x-queue-type): wanted quorum, existing classic',
    });
  });

  verifies('HCP-003', 'keeps a transport from opening when it is an exchange of another type', async () => {
    const raw = await room.raw();
    await raw.deleteExchange('hcp.events');
    await raw.assertExchange('hcp.events', 'fanout', { durable: true });
    try {
      await expect(room.connect()).rejects.toMatchObject({
        code: 'topology_mismatch',
        reason: 'type',
        message: 'Exchange hcp.events exists with another type: wanted topic, existing fanout',
      });
    } finally {
      await raw.deleteExchange('hcp.events');
    }
  });
});
