import type { Check } from '../check.ts';
import type { CallerBench } from './bench.ts';

type Row = readonly [
  name: string,
  requirements: readonly string[],
  title: string,
  run: (bench: CallerBench) => Promise<void>,
];

/** Checks of one family, each in a line: name, what it proves, what the caller does, how it is tried. */
export function family(name: string, rows: readonly Row[]): readonly Check<CallerBench>[] {
  return rows.map(([check, requirements, title, run]) => {
    return { id: `caller/${name}/${check}`, family: name, requirements, title, run };
  });
}
