import { expect } from 'vitest';
import type { Executor } from '../../callee/index.ts';
import type { Store, Write } from '../../shared/store/store.ts';
import { commandRoute } from '../../shared/transport/topology.ts';
import { RecordingClock } from '../support/recorder.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

/** Continues where it was, and ends when told to. */
function continued(finish: Promise<void>): Executor {
  return async (_, run) => {
    if (run.resumedFrom === undefined) {
      await run.checkpoint({ done: 1 }, { description: 'after one' });
      await new Promise((_resolve, reject) => {
        run.signal.addEventListener('abort', () => reject(run.signal.reason));
      });
    }
    await finish;
    return { outputs: {} };
  };
}

/** A store that does not do the takeover of a session before it is told to, and what else it was asked meanwhile. */
function hesitant(store: Store) {
  const others: Write[] = [];
  const reached = Promise.withResolvers<void>();
  const proceed = Promise.withResolvers<void>();
  const commit: Store['commit'] = async (writes) => {
    if (writes.some((write) => 'insert' in write && write.row.kind === 'takeover')) {
      reached.resolve();
      await proceed.promise;
    } else others.push(...writes);
    return store.commit(writes);
  };
  return { store: { ...store, commit }, others, reached: reached.promise, proceed: proceed.resolve };
}

describeOnStacks('what an earlier life left in the outbox', (stack) => {
  verifies(['HCP-112', 'HCP-113'], 'is published when the session is ours, however long that takes', async () => {
    await using world = await World.create(stack());
    const clock = new RecordingClock();
    const { promise: finish, resolve: tellFinish } = Promise.withResolvers<void>();
    const first = await world.serve(continued(finish), { clock });
    await world.submit();
    const { sessionId } = await world.started();
    const said = [...world.received];
    await world.next();
    await first.close();
    // As if the process had died before it told the store how far it got.
    await world.store.commit([{ patch: 'sessions', key: [sessionId], set: { published_through: 0 } }]);

    const { store, others, reached, proceed } = hesitant(world.store);
    const transport = await world.connect();
    const starting = world.serve(continued(finish), { clock, store, transport });
    await reached;
    // What was published before this has its answer after it.
    const nobody = { route: commandRoute('nobody'), body: Buffer.alloc(0), properties: {} };
    expect(await transport.publish(nobody)).toBe('unroutable');
    others.length = 0;
    clock.advance(1000);
    // Of a session that is not ours yet nothing can be told to the store: it would be taken for lost.
    expect(others).toEqual([]);
    proceed();
    await starting;
    const again = await world.hear(6);
    expect(again.map(tell)).toEqual([
      'task_accepted',
      'E1 session_created',
      'E2 PENDING→RUNNING safety_check_passed',
      'E3 checkpoint_created',
      'E4 RUNNING→PAUSED callee_restarted',
      'E5 PAUSED→RUNNING recovered_from_checkpoint',
    ]);
    expect(world.received.slice(4, 7).map(({ body }) => Buffer.from(body).toString())).toEqual(
      said.slice(0, 3).map(({ body }) => Buffer.from(body).toString()),
    );
    tellFinish();
    expect((await world.hearOut()).at(-1)).toBe('E7 closed COMPLETED task_completed');
  });
});
