import { HcpError } from '../../errors.ts';
import {
  bindingMatches,
  bindingSteps,
  deadLetterQueue,
  declarationDifference,
  isHashExchange,
  type QueueDeclaration,
} from '../topology.ts';
import type { Entry, QueuedMessage, Rows } from './broker.ts';
import { choosePartition } from './partition-choice.ts';

export type Settlement = { readonly id: number; readonly consumer: number; readonly how: 'ack' | 'retry' | 'reject' };
export type PublishOutcome = 'confirmed' | 'unroutable' | 'refused';

/** Makes the queue, its bindings and its dead-letter queue. Throws `topology_mismatch`, naming the setting, before it does anything. */
export function declareQueue(rows: Rows, queue: QueueDeclaration): void {
  const queues = queue.deadLetter ? [queue, deadLetterQueue(queue)] : [queue];
  for (const wanted of queues) refuseDifferent(rows, wanted);
  for (const wanted of queues) {
    if (rows.queue(wanted.name) === undefined) rows.addQueue(wanted);
    for (const binding of bindingSteps(wanted)) rows.addBinding(binding);
  }
}

function refuseDifferent(rows: Rows, queue: QueueDeclaration): void {
  const found = rows.queue(queue.name);
  const difference = found && declarationDifference(queue, { ...found, bindings: [] });
  if (!difference) return;
  const { setting, wanted, existing } = difference;
  throw new HcpError(
    'topology_mismatch',
    `Queue ${queue.name} exists with ${setting} ${existing}, and ${wanted} was asked for`,
    { reason: setting },
  );
}

/** Nothing new gets in; once it is empty and nobody consumes it, it is removed. */
export function retireQueue(rows: Rows, queue: QueueDeclaration): 'removed' | 'waiting' | 'absent' {
  const { name } = queue;
  if (rows.queue(name) === undefined) return 'absent';
  for (const binding of bindingSteps(queue)) if (binding.destination === name) rows.removeBinding(binding);
  if (rows.count(name) > 0 || rows.firstConsumer(name) !== undefined) return 'waiting';
  rows.removeQueue(name);
  return 'removed';
}

/** Into every queue that wants it, or into none. */
export function publish(rows: Rows, message: QueuedMessage, now: number): PublishOutcome {
  const queues = [...new Set(destinations(rows, message))].map((name) => queueNamed(rows, name));
  if (queues.length === 0) return 'unroutable';
  if (queues.some((queue) => queue.overflow === 'reject-publish' && roomIn(rows, queue) <= 0)) return 'refused';
  for (const queue of queues) enqueue(rows, queue, message, now);
  return 'confirmed';
}

/** Up to `limit` messages for a consumer; `gone` when its queue was deleted under it. */
export function take(rows: Rows, consumer: number, limit: number, now: number): Entry[] | 'gone' {
  const name = rows.queueOf(consumer);
  if (name === undefined) return 'gone';
  const queue = queueNamed(rows, name);
  if (queue.singleActiveConsumer && rows.firstConsumer(name) !== consumer) return [];
  for (const entry of rows.expiredMessages(name, now)) bury(rows, queue, entry, now);
  const entries = rows.waiting(name, limit);
  for (const { id } of entries) rows.hold(id, consumer);
  return entries;
}

/** Whether {@link take} may have something to tell. */
export function mayTake(rows: Rows, consumer: number, limit: number): boolean {
  const name = rows.queueOf(consumer);
  return name === undefined || (limit > 0 && rows.hasWaiting(name));
}

/** What the consumer no longer holds is passed over: it has been given back already. */
export function settle(rows: Rows, { id, consumer, how }: Settlement, now: number): void {
  const entry = rows.held(id, consumer);
  if (entry === undefined) return;
  if (how === 'ack') rows.removeMessage(id);
  else if (how === 'retry') giveBack(rows, entry, now);
  else bury(rows, queueNamed(rows, entry.queue), entry, now);
}

export function removeConsumer(rows: Rows, consumer: number, now: number): void {
  for (const entry of rows.heldBy(consumer)) giveBack(rows, entry, now);
  rows.removeConsumer(consumer);
}

export function disconnect(rows: Rows, connection: string, now: number): void {
  for (const consumer of rows.consumersOf(connection)) removeConsumer(rows, consumer, now);
  rows.removeConnection(connection);
}

/** Prolongs the lease of a connection and ends those that ran out. Answers whether the connection still exists. */
export function renew(rows: Rows, connection: string, leaseMs: number, now: number): boolean {
  const alive = rows.renewConnection(connection, now + leaseMs);
  for (const expired of rows.expiredConnections(now)) disconnect(rows, expired, now);
  return alive;
}

function destinations(rows: Rows, { route, properties }: QueuedMessage): string[] {
  const { exchange } = route;
  return rows.bindings(exchange).flatMap(({ routingKey, destination }) => {
    if (!bindingMatches({ exchange, routingKey }, route)) return [];
    if (!isHashExchange(destination)) return [destination];
    const partitions = rows.bindings(destination).map((binding) => binding.destination);
    return choosePartition(JSON.parse(properties).correlationId, partitions) ?? [];
  });
}

type Queue = Omit<QueueDeclaration, 'bindings'>;

function enqueue(rows: Rows, queue: Queue, message: QueuedMessage, now: number): void {
  rows.addMessage(queue.name, message, queue.messageTtlMs === undefined ? undefined : now + queue.messageTtlMs);
  const excess = -roomIn(rows, queue);
  if (excess > 0) for (const entry of rows.waiting(queue.name, excess)) bury(rows, queue, entry, now);
}

function giveBack(rows: Rows, entry: Entry, now: number): void {
  const queue = queueNamed(rows, entry.queue);
  const { deliveryLimit = Number.POSITIVE_INFINITY } = queue;
  if (entry.attempts < deliveryLimit) rows.release(entry.id);
  else bury(rows, queue, entry, now);
}

/** To the dead-letter queue, whatever its length; without one the message is gone. */
function bury(rows: Rows, queue: Queue, entry: Entry, now: number): void {
  rows.removeMessage(entry.id);
  if (!queue.deadLetter) return;
  const grave = rows.queue(deadLetterQueue(queue).name);
  if (grave) enqueue(rows, grave, entry.message, now);
}

function roomIn(rows: Rows, { name, maxLength }: Queue): number {
  return maxLength === undefined ? Number.POSITIVE_INFINITY : maxLength - rows.count(name);
}

function queueNamed(rows: Rows, name: string): Queue {
  const queue = rows.queue(name);
  if (queue === undefined) throw new Error(`Queue ${name} has bindings or messages but does not exist`);
  return queue;
}
