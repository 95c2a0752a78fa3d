import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Values } from '../../../../shared/store/engine.ts';
import { layoutsOf } from '../../../../shared/store/layout.ts';
import { SortedRows } from '../../../../shared/store/memory/sorted-rows.ts';

const table = layoutsOf({ t: { columns: { n: 'integer', body: 'text' }, key: ['n'], indexes: {} } }).get('t');
const order = table?.key ?? [];
const row = (n: number): Values => [n, `row ${n}`];

/** Enough to fill and split chunks, which hold 256 rows. */
const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 5_000 }), { minLength: 300, maxLength: 1_500, size: 'max' });

describe('SortedRows', () => {
  it('agrees with a sorted array, whatever was put in and taken out', () => {
    const property = fc.property(
      numbers,
      fc.array(fc.nat(), { maxLength: 600, size: 'max' }),
      fc.integer({ min: 0, max: 5_000 }),
      fc.nat(2_000),
      fc.boolean(),
      (added, removals, from, width, descending) => {
        let rows = new SortedRows(order);
        for (const n of added) rows = rows.with(row(n));
        const left = new Set(added);
        for (const removal of removals) {
          const n = added[removal % added.length];
          if (n === undefined || !left.delete(n)) continue;
          rows = rows.without(row(n));
        }
        const sorted = [...left].sort((a, b) => a - b).filter((n) => n >= from && n < from + width);
        const found = rows.between(
          { values: [from], inclusive: true },
          { values: [from + width], inclusive: false },
          descending,
          1_000,
        );
        const expected = (descending ? sorted.toReversed() : sorted).slice(0, 1_000);
        expect(found).toEqual(expected.map(row));
        expect(rows.find([from])).toEqual(left.has(from) ? row(from) : undefined);
      },
    );
    fc.assert(property, { numRuns: 40 });
  });

  it('leaves an older list as it was', () => {
    let rows = new SortedRows(order);
    for (let n = 0; n < 600; n++) rows = rows.with(row(n * 2));
    const everything = { values: [], inclusive: true };
    const before = rows.between(everything, everything, false, 1_000);

    rows.with(row(301)).without(row(300));

    expect(rows.between(everything, everything, false, 1_000)).toEqual(before);
  });
});
