import { expect } from 'vitest';
import { createCaller } from '../../caller/index.ts';
import { createMemoryStore } from '../../shared/store/memory/index.ts';
import type { Store } from '../../shared/store/store.ts';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import { createFaultPlan, faultyTransport, ManualClock } from '../../testing/index.ts';
import { FakeCallee } from '../support/fake-callee.ts';
import { Recorder } from '../support/recorder.ts';
import { verifies } from '../support/verifies.ts';

/** A store on which whoever reads a submit second does so after the first has stored its answer. */
function slowForTheSecond(inner: Store): Store {
  const stored = Promise.withResolvers<void>();
  let reads = 0;
  return {
    ...inner,
    async get(table, key) {
      if (table === 'submissions' && ++reads === 2) await stored.promise;
      return inner.get(table, key);
    },
    async commit(writes) {
      const outcome = await inner.commit(writes);
      if (writes.some((write) => 'insert' in write && write.insert === 'follows')) stored.resolve();
      return outcome;
    },
  };
}

verifies(
  ['HCP-205'],
  'two copies of one acceptance that are in hand at once are one acceptance, and nothing is aborted',
  async () => {
    const broker = new MemoryBroker();
    await using calleeLink = await connectMemory({ broker });
    await using link = await connectMemory({ broker });
    const store = slowForTheSecond(createMemoryStore());
    const callee = await FakeCallee.listen(calleeLink, 'alpha');
    const uncorrelated = new Recorder<string>();
    const twice = faultyTransport(link, createFaultPlan({ duplicate: 1 }));
    await using caller = createCaller({
      ...{ callerId: 'alpha', transport: twice, store, clock: new ManualClock() },
      onEvent: async () => {},
      onUncorrelated: ({ type }) => uncorrelated.add(type),
    });
    const session = await caller.submit(
      { capability: 'test.task', intent: 'Do it', inputs: {} },
      { calleeId: callee.calleeId },
    );
    await callee.closed(String(session.sessionId), 1); // whatever was done about the copy came before
    await callee.completed(String(session.sessionId));
    expect(await session.result()).toMatchObject({ status: 'completed' });
    expect(uncorrelated.all).toEqual([]);
    expect(callee.commands.all.map(({ type }) => type)).toEqual(['task_submit']);
  },
);
