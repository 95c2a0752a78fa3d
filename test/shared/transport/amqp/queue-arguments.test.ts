import { describe, expect, it } from 'vitest';
import { queueArguments } from '../../../../shared/transport/amqp/topology-rules.ts';
import { commandQueue, deadLetterQueue, eventQueue } from '../../../../shared/transport/topology.ts';

describe('the arguments of a queue', () => {
  it('of profile safe, quorum, lose nothing', () => {
    expect(queueArguments(eventQueue('alpha'), 'quorum')).toEqual({
      'x-queue-type': 'quorum',
      'x-delivery-limit': 20,
      'x-single-active-consumer': true,
      'x-overflow': 'reject-publish',
      'x-dead-letter-exchange': 'hcp.dead',
      'x-dead-letter-routing-key': 'hcp.evt.alpha',
      'x-dead-letter-strategy': 'at-least-once',
    });
    expect(queueArguments(commandQueue('lab', { maxLength: 7 }), 'quorum')).toEqual({
      'x-queue-type': 'quorum',
      'x-delivery-limit': 20,
      'x-max-length': 7,
      'x-overflow': 'reject-publish',
      'x-dead-letter-exchange': 'hcp.dead',
      'x-dead-letter-routing-key': 'hcp.cmd.lab',
      'x-dead-letter-strategy': 'at-least-once',
    });
  });

  it('of profile safe, classic, leave out what classic queues do not have', () => {
    expect(queueArguments(eventQueue('alpha'), 'classic')).toEqual({
      'x-queue-type': 'classic',
      'x-single-active-consumer': true,
      'x-overflow': 'reject-publish',
      'x-dead-letter-exchange': 'hcp.dead',
      'x-dead-letter-routing-key': 'hcp.evt.alpha',
    });
  });

  it('of profile spec are the values of the text', () => {
    expect(queueArguments(eventQueue('alpha', { profile: 'spec' }), 'quorum')).toEqual({
      'x-queue-type': 'quorum',
      'x-max-length': 100_000,
      'x-overflow': 'drop-head',
      'x-message-ttl': 86_400_000,
    });
    expect(queueArguments(commandQueue('lab', { profile: 'spec' }), 'classic')).toEqual({
      'x-queue-type': 'classic',
      'x-overflow': 'drop-head',
    });
  });

  it('of a dead-letter queue have no end', () => {
    expect(queueArguments(deadLetterQueue(commandQueue('lab')), 'quorum')).toEqual({
      'x-queue-type': 'quorum',
      'x-overflow': 'reject-publish',
    });
  });
});
