import type { Values } from './engine.ts';
import type { Column } from './layout.ts';
import type { Key, Value } from './store.ts';

/** By code point, which is the order of UTF-8 bytes. JavaScript's own `<` puts U+FFFF behind every emoji. */
export function compareText(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let at = 0; at < shorter; at++) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x === y) continue;
    // Halves of a pair stand for code points above all single units. Two halves are the same half: text is well-formed.
    if (isSurrogate(x) !== isSurrogate(y)) return isSurrogate(x) ? 1 : -1;
    return x - y;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

/** Both are of one column and not null. */
export function compareValues(a: Value | undefined, b: Value | undefined): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return Number(a) - Number(b);
}

/** Compares a row with a tuple of its leading columns in `order`: 0 when the row begins with the tuple. */
export function compareToTuple(order: readonly Column[], row: Values, tuple: Key): number {
  for (let i = 0; i < tuple.length; i++) {
    const column = order[i];
    const difference = column === undefined ? 0 : compareValues(row[column.at], tuple[i]);
    if (difference !== 0) return difference;
  }
  return 0;
}
