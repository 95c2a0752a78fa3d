import assert from 'node:assert/strict';
import type { Conflict, Write } from '../../shared/store/store.ts';
import type { ContractCase } from '../contract.ts';
import type { StoreHarness } from './harness.ts';
import { cases, commitAll, entry, idsOf, insertThing, positionsOf, type Scene, thing } from './scene.ts';

const exists = (write = 0): Conflict => ({ write, reason: 'exists' });
const missing = (write = 0): Conflict => ({ write, reason: 'missing' });
const mismatch = (write = 0): Conflict => ({ write, reason: 'mismatch' });

/** What each kind of write does and answers. */
export function writeCases(harness: StoreHarness): ContractCase[] {
  return cases(harness, {
    async 'inserts a row with every column and reads it back'({ store, own }) {
      const row = thing(own, 'a', { rank: -3, label: 'L', badge: 'B', body: '{"x":1}' });
      await commitAll(store, [{ insert: 'things', row }]);
      assert.deepEqual(await store.get('things', [own, 'a']), row);
    },
    async 'answers undefined for a row that is not there'({ store, own }) {
      assert.equal(await store.get('things', [own, 'nobody']), undefined);
    },
    async 'refuses to insert a key that is taken'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      assert.deepEqual(await store.commit([insertThing(own, 'a', { version: 2 })]), exists());
      assert.equal((await store.get('things', [own, 'a']))?.version, 1);
    },
    async 'puts a row whether or not it exists, and leaves nothing of the old one'({ store, own }) {
      await commitAll(store, [{ put: 'things', row: thing(own, 'a', { rank: 1, body: 'old' }) }]);
      await commitAll(store, [{ put: 'things', row: thing(own, 'a', { version: 2 }) }]);
      assert.deepEqual(await store.get('things', [own, 'a']), thing(own, 'a', { version: 2 }));
    },
    async 'puts on condition only over a row that exists and matches'({ store, own }) {
      const put: Write = { put: 'things', row: thing(own, 'a', { version: 2 }), if: { version: 1 } };
      assert.deepEqual(await store.commit([put]), missing());
      await commitAll(store, [insertThing(own, 'a')]);
      await commitAll(store, [put]);
      assert.deepEqual(await store.commit([put]), mismatch());
    },
    async 'patches some columns and keeps the others'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a', { rank: 1, label: 'L', body: 'kept' })]);
      await commitAll(store, [{ patch: 'things', key: [own, 'a'], set: { rank: 2, label: null } }]);
      assert.deepEqual(await store.get('things', [own, 'a']), thing(own, 'a', { rank: 2, body: 'kept' }));
    },
    async 'patches only a row that exists and matches'({ store, own }) {
      const patch: Write = { patch: 'things', key: [own, 'a'], set: { version: 2 }, if: { version: 1 } };
      assert.deepEqual(await store.commit([patch]), missing());
      await commitAll(store, [insertThing(own, 'a')]);
      await commitAll(store, [patch]);
      assert.deepEqual(await store.commit([patch]), mismatch());
    },
    async 'counts a patch that changes nothing as done'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      const same: Write = { patch: 'things', key: [own, 'a'], set: { version: 1 }, if: { version: 1 } };
      await commitAll(store, [same]);
      await commitAll(store, [same, insertThing(own, 'b')]);
    },
    async 'deletes a row, and is content when it is gone already'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      await commitAll(store, [{ delete: 'things', key: [own, 'a'] }]);
      await commitAll(store, [{ delete: 'things', key: [own, 'a'] }]);
      assert.equal(await store.get('things', [own, 'a']), undefined);
    },
    async 'deletes on condition only a row that exists and matches'({ store, own }) {
      const remove: Write = { delete: 'things', key: [own, 'a'], if: { version: 1 } };
      assert.deepEqual(await store.commit([remove]), missing());
      await commitAll(store, [insertThing(own, 'a', { version: 2 })]);
      assert.deepEqual(await store.commit([remove]), mismatch());
      await commitAll(store, [{ delete: 'things', key: [own, 'a'], if: { version: 2 } }]);
    },
    async 'checks a row without changing it'({ store, own }) {
      const check: Write = { check: 'things', key: [own, 'a'], if: { version: 1, rank: null } };
      assert.deepEqual(await store.commit([check]), missing());
      await commitAll(store, [insertThing(own, 'a')]);
      await commitAll(store, [check]);
      await commitAll(store, [check, insertThing(own, 'b')]);
      assert.deepEqual(await store.get('things', [own, 'a']), thing(own, 'a'));
      assert.deepEqual(await store.commit([{ ...check, if: { version: 2 } }]), mismatch());
      assert.deepEqual(await store.commit([insertThing(own, 'c'), { ...check, if: { version: 2 } }]), mismatch(1));
    },
    async 'checks that a row is absent, and leaves it absent'({ store, own }) {
      const absent: Write = { check: 'things', key: [own, 'a'], if: 'absent' };
      await commitAll(store, [absent]);
      await commitAll(store, [absent, insertThing(own, 'b')]);
      assert.equal(await store.get('things', [own, 'a']), undefined);
      await commitAll(store, [insertThing(own, 'a')]);
      assert.deepEqual(await store.commit([absent]), exists());
      assert.deepEqual(await store.commit([insertThing(own, 'c'), absent]), exists(1));
    },
    async 'takes a number below a bound as a match, the bound itself and null not'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a', { rank: 5 }), insertThing(own, 'n')]);
      const below = (id: string, bound: number): Write => ({
        check: 'things',
        key: [own, id],
        if: { rank: { below: bound } },
      });
      await commitAll(store, [below('a', 6)]);
      assert.deepEqual(await store.commit([below('a', 5)]), mismatch());
      assert.deepEqual(await store.commit([below('a', -6)]), mismatch());
      assert.deepEqual(await store.commit([below('n', 6)]), mismatch());
    },
    async 'wants every term of a condition to hold'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a', { rank: 5, label: 'L' })]);
      const patch = (rank: number, label: string | null): Write => ({
        patch: 'things',
        key: [own, 'a'],
        set: { version: 2 },
        if: { rank, label },
      });
      assert.deepEqual(await store.commit([patch(5, null)]), mismatch());
      assert.deepEqual(await store.commit([patch(4, 'L')]), mismatch());
      await commitAll(store, [patch(5, 'L')]);
    },
    async 'does all writes of a commit or none, and names the one that failed'({ store, own }) {
      await commitAll(store, [insertThing(own, 'old', { badge: 'gold' })]);
      const good: readonly Write[] = [
        insertThing(own, 'new'),
        { put: 'things', row: thing(own, 'put') },
        { patch: 'things', key: [own, 'old'], set: { version: 7 } },
        { delete: 'things', key: [own, 'old'], if: { version: 7 } },
      ];
      const bad: readonly [Write, Conflict['reason']][] = [
        [{ insert: 'things', row: thing(own, 'put') }, 'exists'],
        [{ patch: 'things', key: [own, 'nobody'], set: { version: 2 } }, 'missing'],
        [{ delete: 'things', key: [own, 'new'], if: { version: 9 } }, 'mismatch'],
        [{ put: 'things', row: thing(own, 'new'), if: { version: 9 } }, 'mismatch'],
        [{ check: 'things', key: [own, 'old'], if: {} }, 'missing'],
      ];
      for (const [write, reason] of bad) {
        assert.deepEqual(await store.commit([...good, write, insertThing(own, 'late')]), { write: 4, reason });
        assert.deepEqual(await idsOf(store.scan('things', 'key', { where: [own] })), ['old']);
      }
      assert.equal((await store.get('things', [own, 'old']))?.version, 1);
    },
    async 'lets each write see the ones before it in the same commit'({ store, own }) {
      await commitAll(store, [
        insertThing(own, 'a'),
        { patch: 'things', key: [own, 'a'], set: { version: 2 }, if: { version: 1 } },
        { patch: 'things', key: [own, 'a'], set: { version: 3 }, if: { version: 2 } },
        { delete: 'things', key: [own, 'a'], if: { version: 3 } },
        insertThing(own, 'a', { version: 4 }),
      ]);
      assert.equal((await store.get('things', [own, 'a']))?.version, 4);
    },
    async 'names the first of several conflicts, in the order given'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      const answer = await store.commit([
        insertThing(own, 'b'),
        { patch: 'things', key: [own, 'a'], set: { version: 2 }, if: { version: 9 } },
        insertThing(own, 'a'),
        { insert: 'entries', row: entry(own, 1) },
      ]);
      assert.deepEqual(answer, mismatch(1));
    },
    async 'misses a row that the same commit has deleted before'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      const remove: Write = { delete: 'things', key: [own, 'a'] };
      assert.deepEqual(await store.commit([remove, { ...remove, if: { version: 1 } }]), missing(1));
      assert.deepEqual(
        await store.commit([remove, { patch: 'things', key: [own, 'a'], set: { version: 2 } }]),
        missing(1),
      );
      await commitAll(store, [{ ...remove, if: { version: 1 } }, remove]);
    },
    async 'does not let a later put make an earlier insert right'({ store, own }) {
      assert.deepEqual(
        await store.commit([{ put: 'things', row: thing(own, 'a') }, insertThing(own, 'b'), insertThing(own, 'a')]),
        exists(2),
      );
      assert.equal(await store.get('things', [own, 'a']), undefined);
    },
    async 'commits writes of several tables together'({ store, own }) {
      const writes = (position: number): Write[] => [
        { patch: 'things', key: [own, 'a'], set: { version: position }, if: { version: { below: position } } },
        { insert: 'entries', row: entry(own, position) },
      ];
      await commitAll(store, [insertThing(own, 'a', { version: 0 })]);
      await commitAll(store, [...writes(1), ...writes(2)]);
      assert.deepEqual(await store.commit([...writes(3), ...writes(2)]), mismatch(2));
      assert.deepEqual(await positionsOf(store, own), [1, 2]);
    },
    async 'commits a long list at once'({ store, own }) {
      const rows = Array.from({ length: 500 }, (_, i) => entry(own, i));
      await commitAll(
        store,
        rows.map((row): Write => ({ insert: 'entries', row })),
      );
      assert.equal((await positionsOf(store, own)).length, 500);
    },
    async 'takes an empty commit and an empty append as done'({ store }) {
      assert.equal(await store.commit([]), 'committed');
      assert.equal(await store.append('entries', []), 'appended');
    },
    ...uniqueIndexes,
    ...appends,
  });
}

const uniqueIndexes = {
  async 'refuses a second row with the same unique value, by insert, put and patch'({ store, own }: Scene) {
    await commitAll(store, [insertThing(own, 'a', { badge: 'gold' }), insertThing(own, 'b')]);
    assert.deepEqual(await store.commit([insertThing(own, 'c', { badge: 'gold' })]), exists());
    assert.deepEqual(await store.commit([{ put: 'things', row: thing(own, 'b', { badge: 'gold' }) }]), exists());
    assert.deepEqual(await store.commit([{ put: 'things', row: thing(own, 'c', { badge: 'gold' }) }]), exists());
    const patch: Write = { patch: 'things', key: [own, 'b'], set: { badge: 'gold' } };
    assert.deepEqual(await store.commit([patch]), exists());
    assert.deepEqual(await store.commit([insertThing(own, 'c'), patch]), exists(1));
    assert.deepEqual(await idsOf(store.scan('things', 'by_badge', { where: [own] })), ['a']);
    assert.equal(await store.get('things', [own, 'c']), undefined);
  },
  async 'lets any number of rows have null in a unique index'({ store, own }: Scene) {
    await commitAll(store, [insertThing(own, 'a'), insertThing(own, 'b'), insertThing(own, 'c')]);
    await commitAll(store, [{ patch: 'things', key: [own, 'a'], set: { badge: 'gold' } }]);
    await commitAll(store, [{ patch: 'things', key: [own, 'a'], set: { badge: null } }]);
    await commitAll(store, [insertThing(own, 'd', { badge: 'gold' })]);
  },
  async 'hands a unique value on within one commit'({ store, own }: Scene) {
    await commitAll(store, [insertThing(own, 'a', { badge: 'gold' }), insertThing(own, 'b')]);
    await commitAll(store, [
      { patch: 'things', key: [own, 'a'], set: { badge: null } },
      { patch: 'things', key: [own, 'b'], set: { badge: 'gold' } },
    ]);
    await commitAll(store, [{ delete: 'things', key: [own, 'b'] }, insertThing(own, 'c', { badge: 'gold' })]);
    assert.deepEqual(await idsOf(store.scan('things', 'by_badge', { where: [own, 'gold'] })), ['c']);
    // The other way round the value is not free yet.
    const early = [insertThing(own, 'd', { badge: 'gold' }), { delete: 'things', key: [own, 'c'] } as const];
    assert.deepEqual(await store.commit(early), exists());
  },
  async 'lets a row keep its own unique value when it is written again'({ store, own }: Scene) {
    const row = thing(own, 'a', { badge: 'gold' });
    await commitAll(store, [{ insert: 'things', row }]);
    await commitAll(store, [{ put: 'things', row: { ...row, version: 2 } }]);
    await commitAll(store, [{ patch: 'things', key: [own, 'a'], set: { badge: 'gold', version: 3 } }]);
  },
};

const appends = {
  async 'appends rows in order'({ store, own }: Scene) {
    assert.equal(await store.append('entries', [entry(own, 1), entry(own, 2), entry(own, 3)]), 'appended');
    assert.deepEqual(await positionsOf(store, own), [1, 2, 3]);
  },
  async 'stops an append at the first taken key and keeps what came before it'({ store, own }: Scene) {
    await commitAll(store, [{ insert: 'entries', row: entry(own, 3, 'first') }]);
    const rows = [1, 2, 3, 4].map((position) => entry(own, position, 'second'));
    assert.deepEqual(await store.append('entries', rows), exists(2));
    assert.deepEqual(await positionsOf(store, own), [1, 2, 3]);
    assert.equal((await store.get('entries', [own, 3]))?.body, 'first');
  },
  async 'stops an append at a key it has brought itself'({ store, own }: Scene) {
    assert.deepEqual(await store.append('entries', [entry(own, 1), entry(own, 1), entry(own, 2)]), exists(1));
    assert.deepEqual(await positionsOf(store, own), [1]);
  },
  async 'stops an append at a taken unique value'({ store, own }: Scene) {
    const rows = [thing(own, 'a', { badge: 'gold' }), thing(own, 'b', { badge: 'gold' }), thing(own, 'c')];
    assert.deepEqual(await store.append('things', rows), exists(1));
    assert.deepEqual(await idsOf(store.scan('things', 'key', { where: [own] })), ['a']);
  },
};
