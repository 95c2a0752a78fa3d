import { describe, expect, it } from 'vitest';
import { HcpError, isHcpError } from '../../../shared/errors.ts';
import { createStore } from '../../../shared/store/create-store.ts';
import type { Engine, EngineTransaction } from '../../../shared/store/engine.ts';
import { layoutsOf } from '../../../shared/store/layout.ts';
import type { Store, StoreTransaction } from '../../../shared/store/store.ts';
import { eventRow, insertSession, sessionRow, TABLES } from './support/scene.ts';

class DriverError extends Error {}

/** An engine that has no data: it notes its calls, and does what a test tells it to. */
function noting(behaviour: Partial<Engine & EngineTransaction> = {}): { store: Store; calls: string[] } {
  const calls: string[] = [];
  const note = async (call: string): Promise<undefined> => {
    calls.push(call);
    return undefined;
  };
  const transaction: EngineTransaction = {
    native: 'native',
    get: () => note('tx.get'),
    scan: async () => [],
    write: () => note('tx.write'),
    ...behaviour,
  };
  const engine: Engine = {
    get: () => note('get'),
    scan: async () => {
      await note('scan');
      return [];
    },
    commit: () => note('commit'),
    append: () => note('append'),
    transaction: async (work) => {
      await note('transaction');
      return work(transaction);
    },
    now: async () => 0,
    close: () => note('close'),
    translate: (error) =>
      error instanceof DriverError ? new HcpError('store_unavailable', error.message, { cause: error }) : error,
    ...behaviour,
  };
  return { store: createStore(engine, TABLES, layoutsOf(TABLES)), calls };
}

describe('what createStore does for every engine', () => {
  it('does not bother the engine with nothing: empty lists and empty ranges', async () => {
    const { store, calls } = noting();
    expect(await store.commit([])).toBe('committed');
    expect(await store.append('events', [])).toBe('appended');
    expect(await store.scan('events', 'key', { where: ['s'], from: 2, to: 1 })).toEqual([]);
    await store.transaction((tx) => tx.write([]));
    expect(calls).toEqual(['transaction']);
  });

  it('refuses a mistake before the engine hears of it', async () => {
    const { store, calls } = noting();
    await expect(store.commit([insertSession('s'), { insert: 'nowhere', row: {} }])).rejects.toThrow(TypeError);
    await expect(store.append('events', [eventRow('s', 1), eventRow('s', 1.5)])).rejects.toThrow('safe integer');
    expect(calls).toEqual([]);
  });

  it('says no value in an error: it may be a secret', async () => {
    const { store } = noting();
    const owner = { session_token: 'hunter2' } as unknown as string; // what a caller without types could pass
    await expect(store.commit([insertSession('s', { owner })])).rejects.toThrow(
      'sessions.owner must be text or null, not a object',
    );
  });

  it('closes the engine once, after everything that runs', async () => {
    const mayEnd = Promise.withResolvers<undefined>();
    const { store, calls } = noting({ commit: () => mayEnd.promise });
    const committing = store.commit([insertSession('s')]);
    const closing = [store.close(), store.close(), store[Symbol.asyncDispose]()];
    await expect(store.now()).rejects.toSatisfy((error) => isHcpError(error, 'store_closed'));
    expect(calls).toEqual([]);
    mayEnd.resolve(undefined);
    await Promise.all([committing, ...closing]);
    expect(calls).toEqual(['close']);
  });

  it('gives every waiter the reason when closing fails', async () => {
    const { store } = noting({ close: () => Promise.reject(new DriverError('disk full')) });
    for (const closing of [store.close(), store.close()]) {
      await expect(closing).rejects.toSatisfy((error) => isHcpError(error, 'store_unavailable'));
    }
  });

  it("translates the driver's errors, and leaves those of the work alone", async () => {
    const broken = () => Promise.reject(new DriverError('cable cut'));
    const { store } = noting({ get: broken, write: broken });
    const unavailable = (error: unknown) =>
      isHcpError(error, 'store_unavailable') && error.cause instanceof DriverError;
    await expect(store.get('sessions', ['s'])).rejects.toSatisfy(unavailable);
    await expect(store.transaction((tx) => tx.write([insertSession('s')]))).rejects.toSatisfy(unavailable);
    const mine = new DriverError('from the same driver, but mine');
    const failing = store.transaction(async () => {
      throw mine;
    });
    await expect(failing).rejects.toBe(mine);
  });

  it('shows the engine its own error, even if the work made another of it: the engine may run the work again', async () => {
    const transient = new DriverError('transient');
    let attempts = 0;
    const tx: EngineTransaction = {
      native: undefined,
      get: async () => undefined,
      scan: async () => [],
      write: async () => {
        attempts++;
        if (attempts < 3) throw transient;
        return undefined;
      },
    };
    const { store } = noting({
      transaction: async (work) => {
        for (;;) {
          try {
            return await work(tx);
          } catch (error) {
            if (error !== transient) throw error;
          }
        }
      },
    });
    const seen: StoreTransaction[] = [];

    await store.transaction(async (tx) => {
      seen.push(tx);
      await tx.write([insertSession('s')]).catch(() => {
        throw new Error('something of the program');
      });
    });

    expect(seen).toHaveLength(3);
    // Those of earlier runs are over.
    await expect(seen[0]?.get('sessions', ['s'])).rejects.toThrow('The transaction is over');
  });

  it('looks at the row after a patch large enough to pass the limit, in the same transaction', async () => {
    const huge = 'x'.repeat(15 * 1024 * 1024);
    const { store, calls } = noting({
      get: async () => [...Object.values(sessionRow('s', { owner: huge }))],
    });
    const patch = (owner: string) => store.commit([{ patch: 'sessions', key: ['s'], set: { owner } }]);
    expect(await patch('y'.repeat(100))).toBe('committed');
    await expect(patch('y'.repeat(20_000))).rejects.toSatisfy((error) => isHcpError(error, 'store_record_too_large'));
    expect(calls).toEqual(['commit', 'transaction', 'tx.write']);
  });
});
