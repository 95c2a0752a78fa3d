import assert from 'node:assert/strict';
import { isHcpError } from '../../shared/errors.ts';
import type { StoreTransaction } from '../../shared/store/store.ts';
import type { ContractCase } from '../contract.ts';
import type { StoreHarness } from './harness.ts';
import { cases, commitAll, entry, idsOf, insertThing, positionsOf, rejectsWith } from './scene.ts';

/** What a transaction shows, to itself and to others, and how it ends. */
export function transactionCases(harness: StoreHarness): ContractCase[] {
  return cases(harness, {
    async 'commits the writes of a transaction together and resolves with its result'({ store, own }) {
      const result = await store.transaction(async (tx) => {
        await tx.write([insertThing(own, 'a')]);
        await tx.write([{ insert: 'entries', row: entry(own, 1) }]);
        return 'result';
      });
      assert.equal(result, 'result');
      assert.ok(await store.get('things', [own, 'a']));
      assert.deepEqual(await positionsOf(store, own), [1]);
    },
    async 'lets a transaction read its own writes'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a', { rank: 1 })]);
      await store.transaction(async (tx) => {
        await tx.write([insertThing(own, 'b', { rank: 0 }), { patch: 'things', key: [own, 'a'], set: { version: 2 } }]);
        assert.equal((await tx.get('things', [own, 'a']))?.version, 2);
        assert.deepEqual(await idsOf(tx.scan('things', 'by_rank', { where: [own] })), ['b', 'a']);
        await tx.write([{ delete: 'things', key: [own, 'b'] }]);
        assert.equal(await tx.get('things', [own, 'b']), undefined);
      });
    },
    async 'hides an open transaction from every other reader'({ store, own, open }) {
      const other = await open();
      await commitAll(store, [insertThing(own, 'a', { rank: 1 })]);
      await store.transaction(async (tx) => {
        await tx.write([insertThing(own, 'b', { rank: 2 }), { patch: 'things', key: [own, 'a'], set: { version: 2 } }]);
        for (const reader of [store, other]) {
          assert.equal((await reader.get('things', [own, 'a']))?.version, 1);
          assert.equal(await reader.get('things', [own, 'b']), undefined);
          assert.deepEqual(await idsOf(reader.scan('things', 'by_rank', { where: [own] })), ['a']);
        }
      });
      for (const reader of [store, other]) {
        assert.deepEqual(await idsOf(reader.scan('things', 'by_rank', { where: [own] })), ['a', 'b']);
      }
    },
    async 'rolls back and rejects with what the work threw'({ store, own }) {
      const mine = new Error('mine');
      const failing = store.transaction(async (tx) => {
        await tx.write([insertThing(own, 'a')]);
        throw mine;
      });
      await assert.rejects(failing, (error) => error === mine);
      assert.equal(await store.get('things', [own, 'a']), undefined);
      await commitAll(store, [insertThing(own, 'a')]);
    },
    async 'rejects with store_conflict and its reason when a write meets a conflict'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      const failing = store.transaction(async (tx) => {
        await tx.write([
          insertThing(own, 'b'),
          { patch: 'things', key: [own, 'a'], set: { version: 2 }, if: { version: 9 } },
        ]);
      });
      await assert.rejects(failing, (error) => isHcpError(error, 'store_conflict') && error.reason === 'mismatch');
      assert.equal(await store.get('things', [own, 'b']), undefined);
    },
    async 'dooms a transaction whose conflict is swallowed'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      const swallowing = store.transaction(async (tx) => {
        await tx.write([insertThing(own, 'b')]);
        await tx.write([insertThing(own, 'a')]).catch(() => {});
        await tx.write([insertThing(own, 'c')]).catch(() => {});
        return 'all is well';
      });
      await rejectsWith('store_conflict', swallowing);
      assert.deepEqual(await idsOf(store.scan('things', 'key', { where: [own] })), ['a']);
    },
    async 'rejects with what the work made of a conflict'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      const mine = new Error('mine');
      const failing = store.transaction(async (tx) => {
        await tx.write([insertThing(own, 'a'), insertThing(own, 'b')]).catch(() => {
          throw mine;
        });
      });
      await assert.rejects(failing, (error) => error === mine);
    },
    async 'keeps a transaction alive after a mistake in a call'({ store, own }) {
      await store.transaction(async (tx) => {
        await assert.rejects(tx.get('nowhere', []), TypeError);
        await rejectsWith('store_value_invalid', tx.write([insertThing(own, '\ud800')]));
        await tx.write([insertThing(own, 'a')]);
      });
      assert.ok(await store.get('things', [own, 'a']));
    },
    async 'does calls made at the same time one after the other'({ store, own }) {
      await store.transaction(async (tx) => {
        await Promise.all([
          tx.write([insertThing(own, 'a')]),
          tx.write([{ patch: 'things', key: [own, 'a'], set: { version: 2 } }]),
          tx.get('things', [own, 'a']).then((row) => assert.equal(row?.version, 2)),
          tx.write([{ patch: 'things', key: [own, 'a'], set: { version: 3 } }]),
        ]);
      });
      assert.equal((await store.get('things', [own, 'a']))?.version, 3);
    },
    async 'commits calls that the work did not wait for, and refuses later ones'({ store, own }) {
      let kept: StoreTransaction | undefined;
      await store.transaction(async (tx) => {
        kept = tx;
        void tx.write([insertThing(own, 'a')]);
      });
      assert.ok(await store.get('things', [own, 'a']));
      await assert.rejects(Promise.resolve(kept?.write([insertThing(own, 'b')])), TypeError);
      assert.equal(await store.get('things', [own, 'b']), undefined);
    },
    async 'lets no update of concurrent transactions get lost'({ store, own, open }) {
      const other = await open();
      await commitAll(store, [insertThing(own, 'counter', { version: 0 })]);
      const increment = (through: typeof store) =>
        through.transaction(async (tx) => {
          const row = await tx.get('things', [own, 'counter']);
          await tx.write([
            { patch: 'things', key: [own, 'counter'], set: { version: Number(row?.version) + 1 } },
            { insert: 'entries', row: entry(own, Number(row?.version)) },
          ]);
        });
      await Promise.all(Array.from({ length: 12 }, (_, i) => increment(i % 2 === 0 ? store : other)));
      assert.equal((await store.get('things', [own, 'counter']))?.version, 12);
      assert.equal((await positionsOf(store, own)).length, 12);
    },
    async 'lets a check hold a row still until the commit'({ store, own, open }) {
      const other = await open();
      await commitAll(store, [insertThing(own, 'lease', { label: 'me' })]);
      // Each commit is right by itself; both together would be a write by someone who is no longer the owner.
      const [written, taken] = await Promise.all([
        store.commit([
          { check: 'things', key: [own, 'lease'], if: { label: 'me', version: 1 } },
          { insert: 'entries', row: entry(own, 1) },
        ]),
        other.commit([
          { patch: 'things', key: [own, 'lease'], set: { label: 'you' } },
          { check: 'entries', key: [own, 1], if: 'absent' },
        ]),
      ]);
      assert.equal([written, taken].filter((answer) => answer === 'committed').length, 1);
    },
    async 'shows a commit whole or not at all to a concurrent scan'({ store, own, open }) {
      const other = await open();
      await commitAll(
        store,
        [1, 2, 3].map((i) => insertThing(own, `t${i}`, { version: 0 })),
      );
      let writing = true;
      const write = async () => {
        for (let version = 1; version <= 20; version++) {
          await commitAll(
            store,
            [1, 2, 3].map((i) => ({ patch: 'things', key: [own, `t${i}`], set: { version } })),
          );
        }
        writing = false;
      };
      const read = async () => {
        while (writing) {
          const versions = (await other.scan('things', 'key', { where: [own] })).map((row) => row.version);
          assert.equal(versions.length, 3);
          assert.equal(new Set(versions).size, 1, `torn: ${versions}`);
        }
      };
      await Promise.all([write(), read()]);
    },
  });
}
