import type { Check } from '../check.ts';
import { aborts } from './aborts.ts';
import { answers } from './answers.ts';
import type { CallerBench } from './bench.ts';
import { duplicates } from './duplicates.ts';
import { extensions } from './extensions.ts';
import { gaps } from './gaps.ts';
import { oddMessages } from './odd-messages.ts';
import { order } from './order.ts';
import { restarts } from './restarts.ts';
import { results } from './results.ts';
import { submitting } from './submitting.ts';

export { type CallerBench, type CallerBenchOptions, openCallerBench } from './bench.ts';

/** What a caller must do, tried on it by a callee that the kit plays. */
export const callerChecks: readonly Check<CallerBench>[] = [
  ...submitting,
  ...answers,
  ...order,
  ...duplicates,
  ...gaps,
  ...oddMessages,
  ...results,
  ...aborts,
  ...restarts,
  ...extensions,
];
