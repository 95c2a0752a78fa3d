import assert from 'node:assert/strict';
import type { Range, Row, Store } from '../../shared/store/store.ts';
import type { ContractCase } from '../contract.ts';
import type { StoreHarness } from './harness.ts';
import { cases, commitAll, idsOf, insertThing, thing } from './scene.ts';

/** In code-point order: U+FFFF comes before every emoji, which UTF-16 would turn round. */
const TEXTS = [
  '',
  '\u0000',
  '\u0001',
  ' ',
  '$a',
  '.',
  '0',
  'A',
  'B',
  'a',
  'a\u0000',
  'aa',
  'z',
  'é',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '😀',
  '😀a',
  '\u{10ffff}',
];
const NUMBERS = [Number.MIN_SAFE_INTEGER, -(2 ** 31) - 1, -1, 0, 1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER];

/** What an index gives back, and in which order. */
export function scanCases(harness: StoreHarness): ContractCase[] {
  return cases(harness, {
    async 'scans text in code-point order, both ways'({ store, own }) {
      await insertShuffled(
        store,
        TEXTS.map((id) => thing(own, id, { label: id, rank: 1 })),
      );
      for (const index of ['key', 'by_label']) {
        assert.deepEqual(await idsOf(store.scan('things', index, { where: [own] })), TEXTS);
        const back = store.scan('things', index, { where: [own], order: 'descending' });
        assert.deepEqual(await idsOf(back), TEXTS.toReversed());
      }
    },
    async 'scans numbers by value, from the smallest safe integer to the largest'({ store, own }) {
      await insertShuffled(
        store,
        NUMBERS.map((rank, i) => thing(own, `n${i}`, { rank })),
      );
      const rows = await store.scan('things', 'by_rank', { where: [own] });
      assert.deepEqual(
        rows.map((row) => row.rank),
        NUMBERS,
      );
    },
    async 'scans whole rows'({ store, own }) {
      const row = thing(own, 'a', { rank: 1, label: 'L', badge: 'B', body: 'text' });
      await commitAll(store, [{ insert: 'things', row }]);
      for (const index of ['key', 'by_rank', 'by_label', 'by_version', 'by_badge', 'by_place']) {
        assert.deepEqual(await store.scan('things', index, { where: [own] }), [row]);
      }
    },
    async 'keeps both bounds, in either order'({ store, own }) {
      await insertShuffled(
        store,
        [1, 2, 3, 4, 5].map((rank) => thing(own, `t${rank}`, { rank })),
      );
      const scan = (range: Range) => idsOf(store.scan('things', 'by_rank', { where: [own], ...range }));
      assert.deepEqual(await scan({ from: 2, to: 4 }), ['t2', 't3', 't4']);
      assert.deepEqual(await scan({ from: 2, to: 4, order: 'descending' }), ['t4', 't3', 't2']);
      assert.deepEqual(await scan({ from: 4 }), ['t4', 't5']);
      assert.deepEqual(await scan({ to: 2, order: 'descending' }), ['t2', 't1']);
      assert.deepEqual(await scan({ from: 3, to: 3 }), ['t3']);
      assert.deepEqual(await scan({ from: 4, to: 2 }), []);
    },
    async 'bounds the key by its next column'({ store, own }) {
      await store.append(
        'entries',
        [1, 2, 3, 10, 20].map((position) => ({ log: own, position, body: '' })),
      );
      const rows = await store.scan('entries', 'key', { where: [own], from: 2, to: 10 });
      assert.deepEqual(
        rows.map((row) => row.position),
        [2, 3, 10],
      );
      const last = await store.scan('entries', 'key', { where: [own], order: 'descending', limit: 1 });
      assert.deepEqual(
        last.map((row) => row.position),
        [20],
      );
    },
    async 'finds the rows that equal every column of an index'({ store, own }) {
      await insertShuffled(store, [
        thing(own, 'a', { label: 'x', rank: 1 }),
        thing(own, 'b', { label: 'x', rank: 2 }),
        thing(own, 'c', { label: 'y', rank: 1 }),
        thing(own, 'd', { label: 'x', rank: 1 }),
      ]);
      assert.deepEqual(await idsOf(store.scan('things', 'by_label', { where: [own, 'x', 1] })), ['a', 'd']);
      assert.deepEqual(await idsOf(store.scan('things', 'by_label', { where: [own, 'x'] })), ['a', 'd', 'b']);
      assert.deepEqual(await idsOf(store.scan('things', 'by_label', { where: [own, 'x'], from: 2 })), ['b']);
    },
    async 'finds the one row that equals a whole key or unique index, and nothing behind it'({ store, own }) {
      const row = thing(own, 'b', { badge: 'iron', rank: 1 });
      await insertShuffled(store, [
        thing(own, 'a', { badge: 'gold', rank: 1 }),
        row,
        thing(own, 'b\0', { badge: 'iron\0', rank: 1 }),
        thing(own, 'c', { badge: 'zinc', rank: 2 }),
      ]);
      for (const order of ['ascending', 'descending'] as const) {
        for (const [index, where] of [
          ['key', [own, 'b']],
          ['by_badge', [own, 'iron']],
          ['by_place', [own, 1, 'b']],
        ] as const) {
          assert.deepEqual(await store.scan('things', index, { where, order }), [row], index);
          assert.deepEqual(await store.scan('things', index, { where, order, after: row }), [], index);
          const bounds = { where: where.slice(0, -1), from: where.at(-1) ?? '', to: where.at(-1) ?? '' };
          assert.deepEqual(await store.scan('things', index, { ...bounds, order }), [row], index);
        }
      }
    },
    async 'pages through an index that holds the whole key'({ store, own }) {
      await insertShuffled(
        store,
        TEXTS.map((id) => thing(own, id, { rank: 1 })),
      );
      for (const order of ['ascending', 'descending'] as const) {
        const expected = order === 'ascending' ? TEXTS : TEXTS.toReversed();
        assert.deepEqual(await idsInPages(store, 'by_place', { where: [own], limit: 3, order }), expected);
        const inner = await idsInPages(store, 'by_place', { where: [own, 1], from: '0', to: 'aa', limit: 2, order });
        assert.deepEqual(
          inner,
          expected.filter((id) => TEXTS.indexOf(id) >= TEXTS.indexOf('0') && TEXTS.indexOf(id) <= TEXTS.indexOf('aa')),
        );
      }
    },
    async 'scans an index without bounds at all'({ store, own }) {
      await insertShuffled(store, [thing(own, 'b', { rank: 1 }), thing(own, 'a', { rank: 1 })]);
      assert.equal((await store.scan('things', 'by_rank', { limit: 1 })).length, 1);
      assert.equal((await store.scan('things', 'key', { limit: 1, order: 'descending' })).length, 1);
    },
    async 'leaves rows with null in an index column out of that index'({ store, own }) {
      await commitAll(store, [
        insertThing(own, 'a', { rank: 1 }),
        insertThing(own, 'b'),
        insertThing(own, 'c', { label: 'x' }),
        insertThing(own, 'd', { label: 'x', rank: 0 }),
      ]);
      assert.deepEqual(await idsOf(store.scan('things', 'by_rank', { where: [own] })), ['d', 'a']);
      assert.deepEqual(await idsOf(store.scan('things', 'by_label', { where: [own] })), ['d']);
      assert.deepEqual(await idsOf(store.scan('things', 'by_badge', { where: [own], order: 'descending' })), []);
    },
    async 'moves a row in its indexes when it is patched, and takes it out when it becomes null'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a', { rank: 1 }), insertThing(own, 'b', { rank: 2 })]);
      await commitAll(store, [{ patch: 'things', key: [own, 'a'], set: { rank: 3 } }]);
      assert.deepEqual(await idsOf(store.scan('things', 'by_rank', { where: [own] })), ['b', 'a']);
      await commitAll(store, [{ patch: 'things', key: [own, 'b'], set: { rank: null } }]);
      assert.deepEqual(await idsOf(store.scan('things', 'by_rank', { where: [own] })), ['a']);
      await commitAll(store, [{ delete: 'things', key: [own, 'a'] }]);
      assert.deepEqual(await idsOf(store.scan('things', 'by_rank', { where: [own] })), []);
    },
    async 'orders ties by key and pages through them without loss or repetition'({ store, own }) {
      const rows = Array.from({ length: 23 }, (_, i) => thing(own, `t${String(i).padStart(2, '0')}`, { rank: i % 2 }));
      await insertShuffled(store, rows);
      const expected = [0, 1].flatMap((rank) => rows.filter((row) => row.rank === rank).map((row) => row.id));
      for (const limit of [1, 2, 5, 23, 100]) {
        assert.deepEqual(await idsInPages(store, 'by_rank', { where: [own], limit }), expected);
        const back = await idsInPages(store, 'by_rank', { where: [own], limit, order: 'descending' });
        assert.deepEqual(back, expected.toReversed());
      }
    },
    async 'pages by key, by a unique index and within bounds'({ store, own }) {
      await insertShuffled(
        store,
        TEXTS.map((id, i) => thing(own, id, { badge: id, rank: i })),
      );
      for (const order of ['ascending', 'descending'] as const) {
        const expected = order === 'ascending' ? TEXTS : TEXTS.toReversed();
        assert.deepEqual(await idsInPages(store, 'key', { where: [own], limit: 3, order }), expected);
        assert.deepEqual(await idsInPages(store, 'by_badge', { where: [own], limit: 3, order }), expected);
        const inner = await idsInPages(store, 'by_rank', { where: [own], from: 2, to: 9, limit: 3, order });
        assert.deepEqual(
          inner,
          expected.filter((id) => TEXTS.indexOf(id) >= 2 && TEXTS.indexOf(id) <= 9),
        );
      }
    },
    async 'goes on behind a row that is gone or has moved since'({ store, own }) {
      await insertShuffled(
        store,
        [1, 2, 3, 4].map((rank) => thing(own, `t${rank}`, { rank })),
      );
      const [, second] = await store.scan('things', 'by_rank', { where: [own], limit: 2 });
      assert.ok(second);
      await commitAll(store, [{ delete: 'things', key: [own, 't2'] }]);
      assert.deepEqual(await idsOf(store.scan('things', 'by_rank', { where: [own], after: second })), ['t3', 't4']);
      await commitAll(store, [insertThing(own, 't2', { rank: 9 })]);
      assert.deepEqual(await idsOf(store.scan('things', 'by_rank', { where: [own], after: second })), [
        't3',
        't4',
        't2',
      ]);
    },
    async 'honours a bound that is narrower than the row to go on behind'({ store, own }) {
      await insertShuffled(
        store,
        [1, 2, 3, 4].map((rank) => thing(own, `t${rank}`, { rank })),
      );
      const after = thing(own, 't1', { rank: 1 });
      const scan = (range: Range) => idsOf(store.scan('things', 'by_rank', { where: [own], after, ...range }));
      assert.deepEqual(await scan({ from: 3 }), ['t3', 't4']);
      assert.deepEqual(await scan({ to: 0 }), []);
      assert.deepEqual(await scan({ order: 'descending' }), []);
    },
    async 'gives 100 rows unless told otherwise, and 1,000 at most'({ store, own }) {
      const rows = Array.from({ length: 1_001 }, (_, position) => ({ log: own, position, body: '' }));
      assert.equal(await store.append('entries', rows), 'appended');
      assert.equal((await store.scan('entries', 'key', { where: [own] })).length, 100);
      assert.equal((await store.scan('entries', 'key', { where: [own], limit: 1_000 })).length, 1_000);
      for (const limit of [0, -1, 1.5, 1_001, Number.NaN]) {
        await assert.rejects(store.scan('entries', 'key', { where: [own], limit }), TypeError);
      }
    },
    async 'refuses a range that makes no sense'({ store, own }) {
      const wrong: readonly [index: string, range: Range][] = [
        ['nowhere', {}],
        ['by_rank', { where: [own, 1, 'more'] }],
        ['by_rank', { where: [own, 1], from: 1 }],
        ['by_rank', { where: [own], after: thing('someone else', 'a', { rank: 1 }) }],
        ['by_rank', { where: [own], after: thing(own, 'a') }],
        ['by_rank', { where: [own], after: { owner: own, rank: 1 } }],
        // Not of the declared type: what a caller without types could pass.
        ['by_rank', { where: [own], order: 'sideways' as 'ascending' }],
      ];
      for (const [index, range] of wrong) await assert.rejects(store.scan('things', index, range), TypeError);
    },
  });
}

async function insertShuffled(store: Store, rows: readonly Row[]): Promise<void> {
  // Neither sorted nor reversed, and the same in every run.
  const shuffled = rows.toSorted((a, b) => shuffleKey(a).localeCompare(shuffleKey(b)));
  await commitAll(
    store,
    shuffled.map((row) => ({ insert: 'things', row })),
  );
}

function shuffleKey(row: Row): string {
  return [...String(row.id)].map((character) => ((character.codePointAt(0) ?? 0) * 7919) % 1009).join();
}

async function idsInPages(store: Store, index: string, range: Range): Promise<unknown[]> {
  const ids: unknown[] = [];
  let page = await store.scan('things', index, range);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    ids.push(...page.map((row) => row.id));
    page = await store.scan('things', index, { ...range, after: last });
  }
  return ids;
}
