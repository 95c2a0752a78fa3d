import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classifyArrival, closeHole, follows, missingBefore } from '../../session/arrival.ts';
import { verifies } from '../support/verifies.ts';

const FURTHEST = 100;

describe('the arrival of an event', () => {
  verifies(['V-100', 'V-106', 'HCP-207'], 'is judged by the cursor and the holes alone', () => {
    const judge = (sequence: number, cursor = 10, holes: [number, number][] = [[4, 5]]) =>
      classifyArrival(sequence, { cursor, holes }, FURTHEST);
    expect([3, 4, 5, 6, 10, 11, 12, 110, 111].map((sequence) => judge(sequence))).toEqual([
      ...['duplicate', 'late', 'late', 'duplicate', 'duplicate', 'next', 'early', 'early', 'absurd'],
    ]);
  });

  verifies('V-110', 'starts a stream with 0 or 1', () => {
    const judge = (sequence: number, cursor: number) => classifyArrival(sequence, { cursor, holes: [] }, FURTHEST);
    expect([judge(0, -1), judge(1, -1), judge(2, -1), judge(0, 1), judge(1, 0)]).toEqual([
      ...['next', 'next', 'early', 'duplicate', 'next'],
    ]);
    expect([missingBefore(3, -1), missingBefore(3, 0), missingBefore(9, 5)]).toEqual([
      [1, 2],
      [1, 2],
      [6, 8],
    ]);
  });

  it('closes a hole from either end and in the middle', () => {
    const holes = [
      [2, 4],
      [8, 8],
    ] as const;
    expect(closeHole(holes, 2)).toEqual([
      [3, 4],
      [8, 8],
    ]);
    expect(closeHole(holes, 3)).toEqual([
      [2, 2],
      [4, 4],
      [8, 8],
    ]);
    expect(closeHole(holes, 8)).toEqual([[2, 4]]);
    expect(closeHole(holes, 6)).toEqual(holes);
  });

  it('closes exactly one number of a hole, whichever it is', () => {
    const numbers = (holes: readonly (readonly [number, number])[]) =>
      holes.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, index) => from + index));
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 20 }),
        fc.nat(10),
        fc.integer({ min: 0, max: 40 }),
        (from, more, sequence) => {
          const holes = [[from, from + more]] as const;
          expect(numbers(closeHole(holes, sequence))).toEqual(numbers(holes).filter((number) => number !== sequence));
        },
      ),
    );
  });

  it('has a successor that is one more, whatever the cursor', () => {
    fc.assert(fc.property(fc.nat(1000), (cursor) => follows(cursor, cursor + 1) && !follows(cursor, cursor + 2)));
  });
});
