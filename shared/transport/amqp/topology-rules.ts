import { HcpError } from '../../errors.ts';
import type { QueueDeclaration } from '../topology.ts';
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
    ...(queue.deadLetter && { 'x-dead-letter-exchange': 'hcp.dead', 'x-dead-letter-routing-key': queue.name }),
    // Without it, a dead letter that finds no queue is gone. The broker offers it for these two settings only.
    ...(queue.deadLetter &&
      type === 'quorum' &&
      queue.overflow === 'reject-publish' && { 'x-dead-letter-strategy': 'at-least-once' }),
  };
}

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

/** RabbitMQ writes `'5'`, `the value '5' of type 'byte'`, or `none`. */
function plain(value: string): string {
  return /^(?:the value )?'(.*?)'(?: of type '\w+')?$/s.exec(value)?.[1] ?? value;
}
