import { HcpError } from '../../errors.ts';
import { deadLetterKey, type QueueDeclaration } from '../topology.ts';
import type { Refusal } from './channel.ts';

export type QueueType = 'quorum' | 'classic';

/** Our declaration in the broker's words. */
export function queueArguments(queue: QueueDeclaration, type: QueueType): Record<string, string | number | boolean> {
  const { deliveryLimit, maxLength, messageTtlMs } = queue;
  return {
    'x-queue-type': type,
    // A classic queue does not count, and refuses to be asked to.
    ...(type === 'quorum' && deliveryLimit !== undefined && { 'x-delivery-limit': deliveryLimit }),
    ...(queue.singleActiveConsumer && { 'x-single-active-consumer': true }),
    ...(maxLength !== undefined && { 'x-max-length': maxLength }),
    'x-overflow': queue.overflow,
    ...(messageTtlMs !== undefined && { 'x-message-ttl': messageTtlMs }),
    ...(queue.deadLetter && {
      'x-dead-letter-exchange': 'hcp.dead',
      'x-dead-letter-routing-key': deadLetterKey(queue),
    }),
    // Without it, a dead letter that finds no queue is gone. The broker offers it for these two settings only.
    ...(queue.deadLetter &&
      type === 'quorum' &&
      queue.overflow === 'reject-publish' && { 'x-dead-letter-strategy': 'at-least-once' }),
  };
}

/** Partitions hash the session id. RabbitMQ does not compare this argument with that of an exchange that exists. */
export const HASH_EXCHANGE = { type: 'x-consistent-hash', arguments: { 'hash-property': 'correlation_id' } } as const;
const PLUGIN = 'rabbitmq_consistent_hash_exchange';

const SETTING_OF_ARGUMENT: Readonly<Record<string, string>> = {
  'x-queue-type': 'queueType',
  'x-delivery-limit': 'deliveryLimit',
  'x-single-active-consumer': 'singleActiveConsumer',
  'x-max-length': 'maxLength',
  'x-overflow': 'overflow',
  'x-message-ttl': 'messageTtlMs',
  'x-dead-letter-exchange': 'deadLetter',
  'x-dead-letter-routing-key': 'deadLetter',
  'x-dead-letter-strategy': 'deadLetter',
};

/** `subject` is "Queue hcp.cmd.lab" or "Exchange hcp.events". */
export function mismatch(subject: string, refusal: Refusal): HcpError<'topology_mismatch'> {
  const [, argument, wanted, existing] =
    /inequivalent arg '([^']+)' for .*?: received (.+) but current is (.+)$/s.exec(refusal.text) ?? [];
  if (argument === undefined || wanted === undefined || existing === undefined) {
    return new HcpError('topology_mismatch', `${subject} cannot be declared as asked: ${refusal.text}`);
  }
  const setting = SETTING_OF_ARGUMENT[argument] ?? argument;
  const named = setting === argument ? setting : `${setting} (${argument})`;
  return new HcpError(
    'topology_mismatch',
    `${subject} exists with another ${named}: wanted ${plain(wanted)}, existing ${plain(existing)}`,
    { reason: setting },
  );
}

/**
 * What is wrong when the broker does not know the type of an exchange; `undefined` when something else is. RabbitMQ 3 ends
 * the whole connection for it (503), RabbitMQ 4 the channel (406).
 */
export function unsupportedType(subject: string, refusal: Refusal): HcpError<'topology_unsupported'> | undefined {
  const type = /(?:unknown|invalid) exchange type '([^']+)'/.exec(refusal.text)?.[1];
  if (type === undefined) return undefined;
  return new HcpError(
    'topology_unsupported',
    `${subject} needs exchanges of type ${type}, which this broker does not have: enable its plugin ${PLUGIN} (rabbitmq-plugins enable ${PLUGIN})`,
    { reason: PLUGIN },
  );
}

/** RabbitMQ writes `'5'`, `''x-consistent-hash''`, `the value '5' of type 'byte'`, or `none`. */
function plain(value: string): string {
  return /^(?:the value )?'{1,2}(.*?)'{1,2}(?: of type '\w+')?$/s.exec(value)?.[1] ?? value;
}
