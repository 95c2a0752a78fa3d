import type { DatabaseSync } from 'node:sqlite';
import type { ClientSession, MongoClient } from 'mongodb';
import { expect } from 'vitest';
import type { EventMessage } from '../../schemas/types.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Store, StoreTransaction } from '../../shared/store/store.ts';
import { enter, entries, inOrder, LEDGER_TABLES } from '../support/ledger.ts';
import { type Ground, Scene } from '../support/scene.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

/** The stack, with a table of the program's own in the store. */
function withLedger({ storeUrl, connect }: Stack): Ground {
  return { connect, openStore: () => openStore(storeUrl, { tables: LEDGER_TABLES }) };
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** Rows the program writes past us, with the engine's own handle. */
function nativeNotes(store: Store) {
  if ('client' in store) {
    const notes = (store.client as MongoClient).db().collection('notes');
    return {
      create: async () => void (await notes.db?.createCollection?.('notes').catch(() => {})),
      write: async ({ session_id, payload }: EventMessage, tx: StoreTransaction) =>
        void (await notes.insertOne(
          { session_id, sequence: payload.sequence },
          { session: tx.native as ClientSession },
        )),
      read: async (sessionId: string) =>
        (await notes.find({ session_id: sessionId }).sort({ _id: 1 }).toArray()).map(({ sequence }) => sequence),
    };
  }
  return {
    create: () =>
      store.transaction(async ({ native }) => {
        (native as DatabaseSync).exec('CREATE TABLE IF NOT EXISTS notes (session_id TEXT, sequence INTEGER)');
      }),
    write: async ({ session_id, payload }: EventMessage, { native }: StoreTransaction) =>
      void (native as DatabaseSync).prepare('INSERT INTO notes VALUES (?, ?)').run(session_id, payload.sequence),
    read: (sessionId: string) =>
      store.transaction(async ({ native }) => {
        const query = (native as DatabaseSync).prepare(
          'SELECT sequence FROM notes WHERE session_id = ? ORDER BY rowid',
        );
        return query.all(sessionId).map(({ sequence }) => sequence);
      }),
  };
}

describeOnStacks('exactly once', (stack) => {
  verifies(['HCP-216', 'V-102'], 'what a handler writes commits with the cursor, or not at all', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    const notes = nativeNotes(scene.store);
    await notes.create();
    let failures = 2;
    const { sessionId } = await scene.following(2, {
      onEvent: async (event, tx) => {
        await enter(event, tx);
        await notes.write(event, tx);
        if (event.payload.sequence === 3 && failures-- > 0) throw new Error('After its writes');
      },
    });
    await scene.callee.events(sessionId, 3, 3, 4);
    await scene.clock.asked(100);
    expect([await entries(scene.store, sessionId), await notes.read(sessionId)]).toEqual([inOrder([1, 2]), [1, 2]]);
    scene.clock.advance(100);
    await scene.clock.asked(200);
    scene.clock.advance(200);
    await scene.reaches(sessionId, 4);
    expect(await entries(scene.store, sessionId)).toEqual(inOrder([1, 2, 3, 4]));
    expect(await notes.read(sessionId)).toEqual([1, 2, 3, 4]);
  });

  verifies('HCP-216', 'what a handler wrote for an event that is parked in the end is not there', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    const { sessionId } = await scene.following(2, {
      maxAttempts: 1,
      onEvent: async (event, tx) => {
        await enter(event, tx);
        if (event.payload.sequence === 3) throw new Error('After its writes');
      },
    });
    await scene.callee.events(sessionId, 3, 4);
    await scene.reaches(sessionId, 4);
    expect(await entries(scene.store, sessionId)).toEqual(inOrder([1, 2, 4]));
    expect(scene.parked.all).toEqual([3]);
  });

  verifies('HCP-216', 'a handler that swallows a conflict of its own fails, and nobody else', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    const { caller, sessionId } = await scene.following(2, {
      maxAttempts: 1,
      onEvent: async (event, tx) => {
        await enter(event, tx);
        if (event.payload.sequence === 3) await enter(event, tx).catch(() => {});
      },
    });
    const other = await scene.submit(caller);
    await Promise.all([scene.callee.events(sessionId, 3, 4), scene.callee.events(other.sessionId, 1, 2)]);
    await scene.reaches(sessionId, 4);
    await scene.reaches(other.sessionId, 2);
    expect([scene.parked.all, await entries(scene.store, sessionId)]).toEqual([[3], inOrder([1, 2, 4])]);
    expect(await entries(scene.store, other.sessionId)).toEqual(inOrder([1, 2]));
  });

  verifies('HCP-216', 'under load one transaction carries many events of many sessions', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    const caller = await scene.caller({ onEvent: enter });
    const followed = await Promise.all(upTo(5).map(() => scene.submit(caller)));
    const before = scene.storeCalls.all.filter((name) => name === 'transaction').length;
    await Promise.all(
      followed.flatMap(({ sessionId }) => upTo(60).map((sequence) => scene.callee.event(sessionId, sequence))),
    );
    for (const { sessionId } of followed) await scene.reaches(sessionId, 60);
    const transactions = scene.storeCalls.all.filter((name) => name === 'transaction').length - before;
    expect(transactions).toBeLessThan(100);
    for (const { sessionId } of followed) expect(await entries(scene.store, sessionId)).toEqual(inOrder(upTo(60)));
  });

  verifies(['HCP-214', 'HCP-219'], 'only the culprit of a group fails; the others are applied once', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    let failing = '';
    const caller = await scene.caller({
      maxAttempts: 3,
      onEvent: async (event, tx) => {
        await enter(event, tx);
        if (event.session_id === failing && event.payload.sequence === 5) throw new Error('Never this one');
      },
    });
    const [culprit, ...others] = await Promise.all(upTo(4).map(() => scene.submit(caller)));
    if (culprit === undefined) throw new Error('There is one');
    failing = culprit.sessionId;
    await Promise.all(
      [culprit, ...others].flatMap(({ sessionId }) =>
        upTo(20).map((sequence) => scene.callee.event(sessionId, sequence)),
      ),
    );
    for (const { sessionId } of others) await scene.reaches(sessionId, 20);
    await scene.reaches(failing, 4);
    for (const pauseMs of [100, 200]) {
      await scene.clock.asked(pauseMs);
      scene.clock.advance(pauseMs);
    }
    await scene.reaches(failing, 20);
    expect(scene.parked.all).toEqual([5]);
    expect(await entries(scene.store, failing)).toEqual(inOrder(upTo(20).filter((sequence) => sequence !== 5)));
    for (const { sessionId } of others) expect(await entries(scene.store, sessionId)).toEqual(inOrder(upTo(20)));
  });

  verifies('HCP-214', 'a handler that hangs is given up, and the other sessions go on', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    let hanging = '';
    const hung: number[] = [];
    const caller = await scene.caller({
      ...{ maxAttempts: 2, handlerTimeoutMs: 7777 },
      onEvent: async (event, tx) => {
        if (event.session_id === hanging) {
          hung.push(event.payload.sequence);
          return new Promise(() => {});
        }
        await enter(event, tx);
      },
    });
    const [slow, other] = [await scene.submit(caller), await scene.submit(caller)];
    hanging = slow.sessionId;
    await scene.callee.event(slow.sessionId, 1);
    await scene.callee.events(other.sessionId, 1, 2, 3);
    while (hung.length < 1) await scene.clock.delays.count(scene.clock.delays.all.length + 1);
    scene.clock.advance(7777);
    await scene.reaches(other.sessionId, 3);
    await scene.clock.asked(100);
    scene.clock.advance(100);
    const again = scene.clock.delays.until(() => hung.length === 2);
    await again;
    scene.clock.advance(7777);
    await scene.reaches(slow.sessionId, 1);
    expect([scene.parked.all, hung]).toEqual([[1], [1, 1]]);
    expect(await entries(scene.store, other.sessionId)).toEqual(inOrder([1, 2, 3]));
  });

  verifies('HCP-214', 'a slow handler delays others no longer than the engine has to', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    const entered = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    let slowOne = '';
    const caller = await scene.caller({
      onEvent: async (event, tx) => {
        if (event.session_id === slowOne) entered.resolve();
        if (event.session_id === slowOne) await gate.promise;
        await enter(event, tx);
      },
    });
    const [slow, other] = [await scene.submit(caller), await scene.submit(caller)];
    slowOne = slow.sessionId;
    await scene.callee.events(slow.sessionId, 1, 2);
    await entered.promise;
    await scene.callee.events(other.sessionId, 1, 2, 3);
    scene.clock.advance(50);
    // SQLite has one writer at a time: there the others wait for the transaction.
    if (!('client' in scene.store)) gate.resolve();
    await scene.reaches(other.sessionId, 3);
    gate.resolve();
    await scene.reaches(slow.sessionId, 2);
    expect(await entries(scene.store, slow.sessionId)).toEqual(inOrder([1, 2]));
  });

  verifies('HCP-214', 'a session whose handler keeps failing delays no other', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    let failing = '';
    const caller = await scene.caller({
      onEvent: async (event, tx) => {
        if (event.session_id === failing) throw new Error('Never');
        await enter(event, tx);
      },
    });
    const [bad, good] = [await scene.submit(caller), await scene.submit(caller)];
    failing = bad.sessionId;
    await scene.callee.events(bad.sessionId, ...upTo(5));
    await scene.clock.asked(100);
    // Time stands still: the failing one waits, the other does not.
    await scene.callee.events(good.sessionId, ...upTo(10));
    await scene.reaches(good.sessionId, 10);
    expect(await scene.cursor(bad.sessionId)).toBe(-1);
  });
});

describeOnStacks('two processes of one caller', (stack) => {
  verifies(['HCP-217', 'HCP-216'], 'that have the same events in hand process each of them once', async () => {
    await using scene = await Scene.open(withLedger(stack()));
    const entered = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const { sessionId } = await scene.following(2, {
      onEvent: async (event, tx) => {
        if (event.payload.sequence === 3) entered.resolve();
        if (event.payload.sequence === 3) await gate.promise;
        await enter(event, tx);
      },
    });
    // As another process does it, that was faster.
    await scene.store.transaction(async (tx) => {
      for (const sequence of [3, 4]) await enter(scene.callee.build(sessionId, sequence).message, tx);
      await tx.write([{ patch: 'follows', key: [scene.callerId, sessionId], set: { last_processed_sequence: 4 } }]);
    });
    gate.resolve();
    await scene.callee.events(sessionId, 3, 4, 5, 6);
    await entered.promise;
    await scene.reaches(sessionId, 6);
    expect(await entries(scene.store, sessionId)).toEqual(inOrder([1, 2, 3, 4, 5, 6]));
    expect(scene.parked.all).toEqual([]);
  });
});
