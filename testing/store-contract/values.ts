import assert from 'node:assert/strict';
import type { Row, Value, Write } from '../../shared/store/store.ts';
import type { ContractCase } from '../contract.ts';
import type { StoreHarness } from './harness.ts';
import { cases, commitAll, entry, insertThing, rejectsWith, thing } from './scene.ts';

const MAX_BYTES = 15 * 1024 * 1024;

/** Texts that some engine or driver is known to mistake for something else. */
const ODD_TEXTS = [
  '',
  ' ',
  '.',
  'a.b',
  '$set',
  '$',
  '__proto__',
  'constructor',
  '\u0000',
  'a\u0000b',
  '\u0000\u0000',
  "'; DROP TABLE hcp_things; --",
  '"quoted"',
  '?1',
  '%_',
  '{"$gt":""}',
  'null',
  '0',
  '\ufeffBOM',
  'e\u0301',
  'é',
  '\ufffd',
  '\uffff',
  '😀',
  '👩‍👩‍👧',
  '\u{10ffff}',
  'line\r\nline',
  'x'.repeat(5_000),
];
const LONE_SURROGATES = ['\ud83d', '\ude00', 'a\ud83db', '\ude00\ud83d'];

/** What can be kept, and what is refused before it touches the data. */
export function valueCases(harness: StoreHarness): ContractCase[] {
  return cases(
    harness,
    {
      async 'keeps odd texts exactly, as key and as value'({ store, own }) {
        const rows = ODD_TEXTS.map((text, i) => thing(own, text, { label: text, body: text, rank: i }));
        await commitAll(
          store,
          rows.map((row) => ({ insert: 'things', row })),
        );
        for (const [i, row] of rows.entries()) {
          assert.deepEqual(await store.get('things', [own, String(row.id)]), row);
          const found = await store.scan('things', 'by_label', { where: [own, String(row.label)] });
          assert.deepEqual(found, [row], `text ${i}`);
        }
      },
      async 'matches odd texts in conditions by equality alone'({ store, own }) {
        await commitAll(store, [insertThing(own, 'a', { label: 'plain' })]);
        for (const text of ODD_TEXTS) {
          const set = { label: text, version: 2 };
          await commitAll(store, [{ patch: 'things', key: [own, 'a'], set }]);
          await commitAll(store, [{ check: 'things', key: [own, 'a'], if: { label: text } }]);
          const other: Write = { check: 'things', key: [own, 'a'], if: { label: `${text}.` } };
          assert.deepEqual(await store.commit([other]), { write: 0, reason: 'mismatch' });
        }
      },
      async 'keeps the empty text apart from null'({ store, own }) {
        await commitAll(store, [insertThing(own, 'a', { label: '', body: null })]);
        await commitAll(store, [{ check: 'things', key: [own, 'a'], if: { label: '', body: null } }]);
        for (const wrong of [{ label: null }, { body: '' }]) {
          const check: Write = { check: 'things', key: [own, 'a'], if: wrong };
          assert.deepEqual(await store.commit([check]), { write: 0, reason: 'mismatch' });
        }
      },
      async 'keeps safe integers exactly, and minus zero as zero'({ store, own }) {
        const numbers = [Number.MIN_SAFE_INTEGER, -(2 ** 31), -1, 0, 2 ** 31, 2 ** 53 - 1];
        for (const [i, rank] of numbers.entries()) {
          await commitAll(store, [insertThing(own, `n${i}`, { rank })]);
          assert.equal((await store.get('things', [own, `n${i}`]))?.rank, rank);
        }
        await commitAll(store, [insertThing(own, 'zero', { rank: -0 })]);
        assert.ok(Object.is((await store.get('things', [own, 'zero']))?.rank, 0));
      },
      async 'refuses half a surrogate pair wherever it is given'({ store, own }) {
        for (const text of LONE_SURROGATES) {
          await rejectsWith('store_value_invalid', store.commit([insertThing(own, text)]));
          await rejectsWith('store_value_invalid', store.commit([insertThing(own, 'a', { body: text })]));
          await rejectsWith('store_value_invalid', store.append('entries', [entry(own, 1, text)]));
          await rejectsWith('store_value_invalid', store.get('things', [own, text]));
          await rejectsWith('store_value_invalid', store.scan('things', 'key', { where: [own], from: text }));
          const check: Write = { check: 'things', key: [own, 'a'], if: { label: text } };
          await rejectsWith('store_value_invalid', store.commit([check]));
        }
        assert.deepEqual(await store.scan('things', 'key', { where: [own] }), []);
      },
      async 'refuses values of another type than the column, before any write'({ store, own }) {
        // What a caller without types could pass.
        const values = [
          1.5,
          Number.NaN,
          Number.POSITIVE_INFINITY,
          2 ** 53,
          '1',
          true,
          1n,
          {},
          [],
        ] as unknown as Value[];
        for (const version of [...values, null]) {
          const writes = [insertThing(own, 'good'), insertThing(own, 'bad', { version })];
          await rejectsWith('store_value_invalid', store.commit(writes));
        }
        const texts = [1, false, { $gt: '' }, ['x'], new Date()] as unknown as Value[];
        for (const label of texts)
          await rejectsWith('store_value_invalid', store.commit([insertThing(own, 'a', { label })]));
        for (const id of texts) await rejectsWith('store_value_invalid', store.get('things', [own, id as string]));
        assert.deepEqual(await store.scan('things', 'key', { where: [own] }), []);
      },
      async 'refuses tables, columns and keys that are not declared'({ store, own }) {
        const { rank: _, ...incomplete } = thing(own, 'a');
        const wrong: readonly Write[] = [
          { insert: 'nowhere', row: thing(own, 'a') },
          { insert: '__proto__', row: thing(own, 'a') },
          { insert: 'things', row: incomplete },
          { insert: 'things', row: { ...thing(own, 'a'), colour: 'red' } },
          { patch: 'things', key: [own, 'a'], set: { colour: 'red' } },
          { patch: 'things', key: [own, 'a'], set: { id: 'b' } },
          { patch: 'things', key: [own, 'a'], set: {} },
          { patch: 'things', key: [own], set: { version: 2 } },
          { delete: 'things', key: [own, 'a', 'b'] },
          { check: 'things', key: [own, 'a'], if: { colour: 'red' } },
          { check: 'things', key: [own, 'a'], if: { label: { below: 1 } } },
        ];
        for (const write of wrong) await assert.rejects(store.commit([insertThing(own, 'good'), write]), TypeError);
        await assert.rejects(store.get('nowhere', ['a']), TypeError);
        assert.deepEqual(await store.scan('things', 'key', { where: [own] }), []);
      },
      async 'names the column that a row lacks'({ store, own }) {
        const { rank: _, ...incomplete } = thing(own, 'a');
        await assert.rejects(store.commit([{ insert: 'things', row: incomplete }]), /things needs rank/);
      },
      async 'copies rows on the way in and on the way out'({ store, own }) {
        const row: Record<string, Value> = { ...thing(own, 'a') };
        const committing = store.commit([{ insert: 'things', row }]);
        row.version = 99;
        assert.equal(await committing, 'committed');
        const read = (await store.get('things', [own, 'a'])) as Record<string, Value>;
        assert.equal(read.version, 1);
        read.version = 99;
        assert.equal((await store.get('things', [own, 'a']))?.version, 1);
        const [scanned] = (await store.scan('things', 'key', { where: [own] })) as Record<string, Value>[];
        assert.ok(scanned);
        scanned.version = 99;
        assert.equal((await store.get('things', [own, 'a']))?.version, 1);
      },
      async 'takes a row of 15 MiB and refuses one byte more, before any write'({ store, own }) {
        const room = MAX_BYTES - Buffer.byteLength(`${own}full`);
        await commitAll(store, [insertThing(own, 'full', { body: 'x'.repeat(room) })]);
        assert.equal(String((await store.get('things', [own, 'full']))?.body).length, room);
        const over = insertThing(own, 'over', { body: 'x'.repeat(room + 1) });
        await rejectsWith('store_record_too_large', store.commit([insertThing(own, 'with'), over]));
        await rejectsWith('store_record_too_large', store.commit([{ put: 'things', row: rowOf(over) }]));
        await rejectsWith('store_record_too_large', store.append('things', [thing(own, 'with'), rowOf(over)]));
        const ids = (await store.scan('things', 'by_version', { where: [own] })).map((row) => row.id);
        assert.deepEqual(ids, ['full']);
      },
      async 'counts the size of a row in bytes of UTF-8, and stays usable after refusing 17 MB'({ store, own }) {
        const euros = '€'.repeat(MAX_BYTES / 3);
        await rejectsWith('store_record_too_large', store.commit([insertThing(own, 'a', { body: euros })]));
        const huge = 'x'.repeat(17_000_000);
        await rejectsWith('store_record_too_large', store.commit([insertThing(own, 'a', { body: huge })]));
        const inside = store.transaction((tx) => tx.write([insertThing(own, 'a', { body: huge })]));
        await rejectsWith('store_record_too_large', inside);
        await commitAll(store, [insertThing(own, 'a')]);
      },
      async 'refuses a patch that would make a row too large'({ store, own }) {
        const half = 'x'.repeat(MAX_BYTES / 2);
        await commitAll(store, [insertThing(own, 'a', { body: half })]);
        const patch: Write = { patch: 'things', key: [own, 'a'], set: { label: half, version: 2 } };
        await rejectsWith('store_record_too_large', store.commit([patch]));
        await rejectsWith('store_record_too_large', store.commit([insertThing(own, 'b'), patch]));
        await rejectsWith(
          'store_record_too_large',
          store.transaction((tx) => tx.write([patch])),
        );
        assert.equal((await store.get('things', [own, 'a']))?.version, 1);
        assert.equal(await store.get('things', [own, 'b']), undefined);
        await commitAll(store, [{ ...patch, set: { body: 'y'.repeat(MAX_BYTES / 2), version: 2 } }]);
        assert.deepEqual(await store.commit([{ ...patch, key: [own, 'c'] }]), { write: 0, reason: 'missing' });
      },
    },
    60_000,
  );
}

function rowOf(write: Write): Row {
  assert.ok('insert' in write);
  return write.row;
}
