import { setTimeout as delay } from 'node:timers/promises';
import { commandRoute, eventQueue, type QueueDeclaration } from '../../../shared/transport/topology.ts';
import { expectSame, expectThat } from '../../wire/expect.ts';
import { isEvent, tell } from '../../wire/heard.ts';
import { Inbox } from '../../wire/inbox.ts';
import type { CalleeBench } from '../bench.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, HANG, progress } from '../script.ts';

const check = calleeFamily('topology');

/** What a queue with this binding of the caller gets while `act` is done. */
async function overheard(bench: CalleeBench, binding: string, act: () => Promise<unknown>): Promise<Inbox> {
  const { transport } = bench;
  const queue: QueueDeclaration = {
    ...eventQueue(bench.callerId, { profile: 'spec' }),
    name: `hcp.evt.${bench.callerId}.conformance`,
    bindings: [{ exchange: 'hcp.events', routingKey: `${bench.callerId}.${binding}` }],
  };
  const inbox = new Inbox();
  await using _consumer = await inbox.listen(transport, queue);
  try {
    await act();
    await delay(bench.quietMs);
  } finally {
    await transport.remove(queue);
  }
  return inbox;
}

export const topologyChecks = [
  check('command-queue', ['HCP-003', 'HCP-101'], 'It consumes hcp.cmd.{callee_id}, bound to hcp.commands', (bench) =>
    bench.stillServes(),
  ),
  check('exchange', ['HCP-003'], 'Everything is published to hcp.events', async (bench) => {
    await bench.run([progress(), COMPLETE]);
    const exchanges = new Set(bench.arrived.map(({ delivery }) => delivery.route.exchange));
    expectSame([...exchanges], ['hcp.events'], 'The exchange');
  }),
  check('routing-key', ['HCP-003', 'HCP-108'], 'The routing key is {caller_id}.{session_id}.{type}', async (bench) => {
    const { id, accepted, heard } = await bench.run([progress(), COMPLETE]);
    for (const message of [accepted, ...heard]) {
      const key = `${bench.callerId}.${id}.${message.type}`;
      expectSame(message.delivery.route.routingKey, key, `The routing key of ${tell(message)}`);
    }
  }),
  check('rejection-key', ['HCP-003', 'D-02'], 'The session word of a rejection is none', async (bench) => {
    const submission = await bench.submit([], { payload: { capability: 'conformance.unknown' } });
    const { delivery } = await bench.rejected(submission);
    expectSame(delivery.route.routingKey, `${bench.callerId}.none.task_rejected`, 'The routing key');
  }),
  check(
    'select-type',
    ['HCP-003'],
    'A queue bound to {caller_id}.*.task_completed gets the results alone',
    async (bench) => {
      const { all } = await overheard(bench, '*.task_completed', () => bench.run([progress(), COMPLETE]));
      expectSame(all.map(tell), ['task_completed'], 'What the queue got');
    },
  ),
  check(
    'select-rejections',
    ['HCP-003'],
    'A queue bound to {caller_id}.*.task_rejected gets rejections',
    async (bench) => {
      const { all } = await overheard(bench, '*.task_rejected', async () => {
        await bench.rejected(await bench.submit([], { payload: { capability: 'conformance.unknown' } }));
      });
      expectSame(
        all.map(({ type }) => type),
        ['task_rejected'],
        'What the queue got',
      );
    },
  ),
  check(
    'select-session',
    ['HCP-003'],
    'A queue bound to {caller_id}.{session_id}.# gets that session alone',
    async (bench) => {
      const session = await bench.start([HANG]);
      await session.state('RUNNING');
      const { all } = await overheard(bench, `${session.id}.#`, async () => {
        await bench.run();
        await session.abort();
        await session.hearOut();
      });
      expectSame(new Set(all.map(({ sessionId }) => sessionId)), new Set([session.id]), 'The sessions it heard of');
    },
  ),
  check('only-its-caller', ['HCP-108'], 'Other callers hear nothing of a session', async (bench) => {
    const other = await bench.another();
    await bench.run([progress(), COMPLETE]);
    await delay(bench.quietMs);
    expectSame(other.arrived.map(tell), [], 'What the other caller heard');
  }),
  check('offline', ['HCP-129', 'V-22'], 'A task runs to its end while its caller is not listening', async (bench) => {
    const { transport } = bench;
    const callerId = bench.otherCallerId();
    const queue = eventQueue(callerId, { profile: 'spec' });
    await transport.declare(queue);
    try {
      const { body, properties } = bench.draft([progress(), COMPLETE], {
        payload: { caller_id: callerId },
        properties: { appId: callerId },
      });
      await transport.publish({ route: commandRoute(bench.calleeId), body, properties });
      await bench.stillServes();
      const inbox = new Inbox();
      await using _consumer = await inbox.listen(transport, queue);
      await inbox.take({ what: 'session_closed', where: (heard) => isEvent(heard, 'session_closed') }, bench.waitMs);
      expectThat(inbox.all.length >= 7, `Some of it was lost: ${inbox.all.map(tell).join(', ')}`);
    } finally {
      await transport.remove(queue);
    }
  }),
];
