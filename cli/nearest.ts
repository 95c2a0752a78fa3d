/** What somebody may have meant: the candidate fewest slips away, if these are few. */
export function nearest(typed: string, candidates: Iterable<string>): string | undefined {
  const most = Math.max(1, Math.floor(typed.length / 3));
  let best: { readonly candidate: string; readonly slips: number } | undefined;
  for (const candidate of candidates) {
    const slips = slipsBetween(typed, candidate);
    if (slips <= most && slips < (best?.slips ?? Number.POSITIVE_INFINITY)) best = { candidate, slips };
  }
  return best?.candidate;
}

/** The end of a sentence that says no: `; did you mean sessions?`, or nothing. */
export function didYouMean(typed: string, candidates: Iterable<string>): string {
  const meant = nearest(typed, candidates);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

/** Letters to insert, remove, replace, or swap with their neighbour (optimal string alignment). */
function slipsBetween(from: string, to: string): number {
  let [last, row]: number[][] = [[], Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      next[j] = Math.min(
        at(row, j) + 1,
        at(next, j - 1) + 1,
        at(row, j - 1) + (isSame ? 0 : 1),
        isSwap ? at(last, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [last, row] = [row, next];
  }
  return at(row, to.length);
}

function at(row: readonly number[] | undefined, column: number): number {
  return row?.[column] ?? Number.POSITIVE_INFINITY;
}
