import type { Check } from '../check.ts';
import type { CalleeBench } from './bench.ts';

/** Makes the checks of one family: `check('complete', ['V-01'], 'It …', async (bench) => …)`. */
export function calleeFamily(
  family: string,
): (
  name: string,
  requirements: readonly string[],
  title: string,
  run: (bench: CalleeBench) => Promise<void>,
) => Check<CalleeBench> {
  return (name, requirements, title, run) => ({ id: `callee/${family}/${name}`, family, requirements, title, run });
}
