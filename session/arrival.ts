/** A stretch of sequence numbers, both ends included. */
export type Range = readonly [from: number, to: number];

/** How far a follower is in one session. */
export interface Place {
  /** The last sequence processed; −1 before the first (D-05). */
  readonly cursor: number;
  /** What was given up, and may still come. */
  readonly holes: readonly Range[];
}

/**
 * `duplicate`: processed before. `late`: given up before. `next`: its turn. `early`: something is missing before it.
 * `absurd`: further ahead than a callee can be; believing it would make everything real a duplicate.
 */
export type Arrival = 'duplicate' | 'late' | 'next' | 'early' | 'absurd';

export function classifyArrival(sequence: number, { cursor, holes }: Place, furthest: number): Arrival {
  if (holes.some(([from, to]) => from <= sequence && sequence <= to)) return 'late';
  if (sequence <= cursor) return 'duplicate';
  if (follows(cursor, sequence)) return 'next';
  return sequence - cursor > furthest ? 'absurd' : 'early';
}

/** A first event may have the number 0 or 1. */
export function follows(cursor: number, sequence: number): boolean {
  return sequence === cursor + 1 || (cursor === -1 && sequence === 1);
}

/** What is missing between the cursor and an event that came early. A callee starts at 1, so 0 is never missed. */
export function missingBefore(sequence: number, cursor: number): Range {
  return [Math.max(1, cursor + 1), sequence - 1];
}

/** The holes after one of the missing events came. */
export function closeHole(holes: readonly Range[], sequence: number): Range[] {
  return holes.flatMap(([from, to]): Range[] => {
    if (sequence < from || sequence > to) return [[from, to]];
    const left: Range[] = sequence > from ? [[from, sequence - 1]] : [];
    const right: Range[] = sequence < to ? [[sequence + 1, to]] : [];
    return [...left, ...right];
  });
}
