/**
 * Which of a hash exchange's queues gets a message. Each queue draws a number for the session and the highest one has it
 * (rendezvous hashing), so the order of the queues does not matter, a new one only takes sessions over, and a removed one
 * only gives its own away. RabbitMQ's plugin hashes differently: the promise is the same, the places are not.
 */
export function choosePartition(correlationId: unknown, queues: readonly string[]): string | undefined {
  // Without a session, as for task_rejected, it is the same queue every time.
  const session = typeof correlationId === 'string' ? correlationId : '';
  let chosen: string | undefined;
  let highest = -1;
  for (const queue of queues) {
    const drawn = hash(`${queue} ${session}`);
    if (drawn > highest) [chosen, highest] = [queue, drawn];
  }
  return chosen;
}

/** FNV-1a of the UTF-16 units, and MurmurHash3's last step: FNV alone hardly moves the high bits for the last characters. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
