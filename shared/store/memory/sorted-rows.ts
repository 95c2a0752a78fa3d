import type { Bound, Values } from '../engine.ts';
import type { Column } from '../layout.ts';
import { compareToTuple } from '../order.ts';
import type { Key } from '../store.ts';

type Chunk = readonly Values[];

const LARGEST_CHUNK = 256;

/**
 * Rows in the order of some columns. A change makes a new list that shares all chunks but one with the old, so a
 * reader, a running transaction and a commit that may still fail each keep the list they began with.
 */
export class SortedRows {
  readonly #order: readonly Column[];
  readonly #chunks: readonly Chunk[];

  constructor(order: readonly Column[], chunks: readonly Chunk[] = []) {
    this.#order = order;
    this.#chunks = chunks;
  }

  /** The first row that begins with `tuple`. */
  find(tuple: Key): Values | undefined {
    const [chunk, at] = this.#seek(tuple, false);
    const row = this.#chunks[chunk]?.[at];
    return row !== undefined && compareToTuple(this.#order, row, tuple) === 0 ? row : undefined;
  }

  /** With one more row, whose place must be free. */
  with(row: Values): SortedRows {
    const [found, foundAt] = this.#seek(this.#tupleOf(row), false);
    // Behind everything: lengthen the last chunk instead of making a chunk of one.
    const last = this.#chunks.length - 1;
    const chunk = found > last && last >= 0 ? last : found;
    const old = this.#chunks[chunk] ?? [];
    const grown = old.toSpliced(chunk === found ? foundAt : old.length, 0, row);
    return this.#replace(chunk, grown.length > LARGEST_CHUNK ? halves(grown) : [grown]);
  }

  /** Without this row, which must be there. */
  without(row: Values): SortedRows {
    const [chunk, at] = this.#seek(this.#tupleOf(row), false);
    const shrunk = (this.#chunks[chunk] ?? []).toSpliced(at, 1);
    return this.#replace(chunk, shrunk.length === 0 ? [] : [shrunk]);
  }

  between(lower: Bound, upper: Bound, descending: boolean, limit: number): Values[] {
    const [firstChunk, firstAt] = this.#seek(lower.values, !lower.inclusive);
    const [endChunk, endAt] = this.#seek(upper.values, upper.inclusive);
    const rows: Values[] = [];
    const from = (chunk: number) => (chunk === firstChunk ? firstAt : 0);
    const to = (chunk: number) => (chunk === endChunk ? endAt : (this.#chunks[chunk]?.length ?? 0));
    for (let i = firstChunk; i <= endChunk && rows.length < limit; i++) {
      const chunk = descending ? endChunk - (i - firstChunk) : i;
      const part = (this.#chunks[chunk] ?? []).slice(from(chunk), Math.max(from(chunk), to(chunk)));
      if (descending) part.reverse();
      for (const row of part) if (rows.length < limit) rows.push(row);
    }
    return rows;
  }

  #tupleOf(row: Values): Key {
    // Only rows without null in these columns are put into a list.
    return this.#order.map((column) => row[column.at] as string | number);
  }

  #replace(chunk: number, by: readonly Chunk[]): SortedRows {
    return new SortedRows(this.#order, this.#chunks.toSpliced(chunk, 1, ...by));
  }

  /** The place of the first row not before `tuple`; with `behind`, of the first row that comes after all that begin with it. */
  #seek(tuple: Key, behind: boolean): [chunk: number, at: number] {
    const reached = (row: Values | undefined): boolean => {
      const difference = row === undefined ? 1 : compareToTuple(this.#order, row, tuple);
      return behind ? difference > 0 : difference >= 0;
    };
    const chunk = firstIndex(this.#chunks.length, (i) => reached(this.#chunks[i]?.at(-1)));
    const rows = this.#chunks[chunk] ?? [];
    return [chunk, firstIndex(rows.length, (i) => reached(rows[i]))];
  }
}

/** The first of 0 … length - 1 for which `holds`, else `length`; `holds` stays true once it is. */
function firstIndex(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function halves(chunk: Chunk): readonly Chunk[] {
  const middle = chunk.length >>> 1;
  return [chunk.slice(0, middle), chunk.slice(middle)];
}
