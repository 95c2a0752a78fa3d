import { describe, expect, it } from 'vitest';
import { type Pending, PublishQueue } from '../../../../shared/transport/amqp/publish-queue.ts';
import { verifies } from '../../../support/verifies.ts';

function pending(body: string, messageId: string | null = body): Pending {
  return {
    exchange: 'hcp.commands',
    routingKey: 'lab',
    content: Buffer.from(body),
    options: messageId === null ? {} : { messageId },
    resolve: () => {},
    reject: () => {},
    abandoned: false,
    returned: false,
    orphaned: false,
  };
}

/** Takes and sends everything that waits. */
function sendAll(queue: PublishQueue): string[] {
  const sent: string[] = [];
  for (let next = queue.take(); next !== undefined; next = queue.take()) {
    queue.sent(next);
    sent.push(next.content.toString());
  }
  return sent;
}

function queueOf(...bodies: string[]): { queue: PublishQueue; all: Pending[] } {
  const queue = new PublishQueue();
  const all = bodies.map((body) => pending(body));
  for (const one of all) queue.add(one);
  return { queue, all };
}

const bodies = (answered: readonly Pending[]) => answered.map(({ content }) => content.toString());

describe('the publish queue', () => {
  it('finds what an answer is for, one or several at once', () => {
    const { queue } = queueOf('a', 'b', 'c', 'd');
    sendAll(queue);
    expect(bodies(queue.answered(2, false))).toEqual(['b']);
    expect(bodies(queue.answered(3, true))).toEqual(['a', 'c']);
    expect(bodies(queue.answered(3, true))).toEqual([]);
    expect(queue.inFlight).toBe(1);
  });

  verifies('HCP-008', 'sends what a lost channel left unanswered first, in its order, numbered from one again', () => {
    const { queue } = queueOf('a', 'b', 'c');
    sendAll(queue);
    queue.answered(1, false);
    queue.add(pending('d'));
    queue.rewind();
    expect(sendAll(queue)).toEqual(['b', 'c', 'd']);
    expect(bodies(queue.answered(1, false))).toEqual(['b']);
  });

  it('does not send again what nobody waits for, but lets it keep its number while in flight', () => {
    const { queue, all } = queueOf('a', 'b', 'c');
    sendAll(queue);
    for (const one of all.slice(0, 1)) one.abandoned = true;
    expect(bodies(queue.answered(1, false))).toEqual(['a']);
    for (const one of all.slice(1, 2)) one.abandoned = true;
    queue.rewind();
    expect(sendAll(queue)).toEqual(['c']);
  });

  it('knows a returned message among equal ones by the order of the returns', () => {
    const queue = new PublishQueue();
    const twins = [pending('same', null), pending('same', null), pending('other')];
    for (const twin of twins) queue.add(twin);
    sendAll(queue);
    const returned = (body: string, messageId?: string) =>
      queue.returned({
        fields: { exchange: 'hcp.commands', routingKey: 'lab' },
        properties: { messageId },
        content: Buffer.from(body),
      });
    returned('same');
    expect(twins.map((twin) => twin.returned)).toEqual([true, false, false]);
    returned('other', 'other');
    returned('same');
    expect(twins.map((twin) => twin.returned)).toEqual([true, true, true]);
  });

  it('forgets on a new channel that a message was returned on the old one', () => {
    const { queue, all } = queueOf('a');
    sendAll(queue);
    const [first] = all;
    if (first === undefined) throw new Error('There is one');
    first.returned = true;
    queue.rewind();
    expect(first.returned).toBe(false);
  });

  it('keeps its order over thousands of messages', () => {
    const many = Array.from({ length: 5000 }, (_, index) => `m${index}`);
    const { queue } = queueOf(...many);
    expect(sendAll(queue)).toEqual(many);
    expect([queue.inFlight, queue.isAwaited]).toEqual([5000, true]);
    queue.answered(5000, true);
    expect([queue.inFlight, queue.isAwaited]).toEqual([0, false]);
  });
});
