import type { Executor } from '../../callee/index.ts';

/** Works until told to stop, then stops at once. It may have been told already: a signal fires only once. */
export const untilStopped: Executor = (_, run) =>
  new Promise((_resolve, reject) => {
    const stop = () => reject(run.signal.reason);
    if (run.signal.aborted) stop();
    else run.signal.addEventListener('abort', stop);
  });
