import assert from 'node:assert/strict';
import type { Tables } from '../../shared/store/tables.ts';
import type { ContractCase } from '../contract.ts';
import type { StoreHarness } from './harness.ts';
import { cases, commitAll, entry, idsOf, insertThing, rejectsWith, TABLES, thing } from './scene.ts';

/** From opening to closing. */
export function lifecycleCases(harness: StoreHarness): ContractCase[] {
  return cases(harness, {
    async 'shows what another store on the same data has committed'({ store, own, open }) {
      const other = await open();
      await commitAll(store, [insertThing(own, 'a')]);
      assert.deepEqual(await other.get('things', [own, 'a']), thing(own, 'a'));
    },
    async 'finds everything again when it is opened anew'({ store, own, open }) {
      await commitAll(store, [insertThing(own, 'a', { rank: 1, body: 'text' })]);
      await store.append('entries', [entry(own, 1)]);
      await store.close();
      const again = await open();
      assert.deepEqual(await again.get('things', [own, 'a']), thing(own, 'a', { rank: 1, body: 'text' }));
      assert.deepEqual(await idsOf(again.scan('things', 'by_rank', { where: [own] })), ['a']);
      assert.deepEqual(await again.get('entries', [own, 1]), entry(own, 1));
    },
    async 'opens many times at once on the same data'({ own, open }) {
      const stores = await Promise.all([open(), open(), open(), open()]);
      const answers = await Promise.all(stores.map((each, i) => each.commit([insertThing(own, `t${i}`)])));
      assert.deepEqual(new Set(answers), new Set(['committed']));
    },
    async 'refuses a declaration that makes no sense'({ harness: { open } }) {
      const things = TABLES.things;
      const wrong: readonly Tables[] = [
        { 'Odd name': things },
        { things: { ...things, columns: { ...things.columns, 'a.b': 'text' } } },
        { things: { ...things, key: [] } },
        { things: { ...things, key: ['rank'] } },
        { things: { ...things, key: ['nothing'] } },
        { things: { ...things, indexes: { key: { columns: ['rank'] } } } },
        { things: { ...things, indexes: { by_nothing: { columns: ['nothing'] } } } },
      ];
      for (const tables of wrong) await assert.rejects(async () => open(tables), TypeError);
    },
    async 'refuses every call after close, and closes again in peace'({ store, own }) {
      await store.close();
      await store.close();
      await store[Symbol.asyncDispose]();
      await rejectsWith('store_closed', store.get('things', [own, 'a']));
      await rejectsWith('store_closed', store.scan('things', 'key'));
      await rejectsWith('store_closed', store.commit([insertThing(own, 'a')]));
      await rejectsWith('store_closed', store.commit([]));
      await rejectsWith('store_closed', store.append('entries', [entry(own, 1)]));
      await rejectsWith(
        'store_closed',
        store.transaction(async () => {}),
      );
      await rejectsWith('store_closed', store.now());
    },
    async 'finishes what is running before it closes'({ store, own, open }) {
      const other = await open();
      const begun = Promise.withResolvers<void>();
      const mayEnd = Promise.withResolvers<void>();
      const running = store.transaction(async (tx) => {
        await tx.write([insertThing(own, 'a')]);
        begun.resolve();
        await mayEnd.promise;
        await tx.write([insertThing(own, 'b')]);
      });
      await begun.promise;
      const closing = store.close();
      await rejectsWith('store_closed', store.get('things', [own, 'a']));
      mayEnd.resolve();
      await running;
      await closing;
      assert.deepEqual(await idsOf(other.scan('things', 'key', { where: [own] })), ['a', 'b']);
    },
    async 'has a clock that moves, in milliseconds since 1970'({ store }) {
      const first = await store.now();
      assert.ok(Number.isInteger(first) && first > Date.UTC(2020, 0));
      let later = first;
      while (later === first) {
        later = await store.now();
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.ok(later > first);
    },
    async 'knows its tables'({ store }) {
      assert.deepEqual(store.tables, TABLES);
    },
  });
}
