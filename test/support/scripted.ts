import { existsSync } from 'node:fs';
import type { Cleanup, Executor, Run } from '../../callee/index.ts';

/** One step of a scripted task: its name as the only key. */
export type ScriptStep =
  | { readonly progress: string }
  | { readonly warning: string }
  | { readonly checkpoint: string }
  | { readonly pause: true }
  | { readonly resume: true }
  /** Never ends by itself, unless the task was resumed. */
  | { readonly hangUnlessResumed: true }
  | { readonly hang: true }
  /** Reports and checkpoints until this file exists. */
  | { readonly workUntil: string };

/** A task whose inputs say what it does, so that another process can be told. */
export const scripted: Executor = async ({ inputs }, run) => {
  const script = inputs.script as readonly ScriptStep[];
  const from = (run.resumedFrom?.data as { next: number } | undefined)?.next ?? 0;
  for (const [offset, step] of script.slice(from).entries()) {
    run.signal.throwIfAborted();
    await perform(step, from + offset, run);
  }
  return { outputs: { steps: script.length } };
};

/** Tells that it was called, in its own process. */
export const scriptedCleanup: Cleanup = () => {
  console.log('cleaned up');
};

async function perform(step: ScriptStep, index: number, run: Run): Promise<void> {
  if ('progress' in step) return run.progress({ stage: 'script', message: step.progress });
  if ('warning' in step) return run.warning({ code: step.warning, message: step.warning });
  if ('checkpoint' in step) return void (await run.checkpoint({ next: index + 1 }, { description: step.checkpoint }));
  if ('pause' in step) return run.pause();
  if ('resume' in step) return run.resume();
  if ('workUntil' in step) return workUntil(step.workUntil, index, run);
  if ('hang' in step || run.resumedFrom === undefined) await stopped(run);
}

async function workUntil(file: string, index: number, run: Run): Promise<void> {
  for (let round = 1; !existsSync(file); round++) {
    run.signal.throwIfAborted();
    await run.progress({ stage: 'working', message: `round ${round}` });
    await run.checkpoint({ next: index }, { description: `round ${round}` });
  }
}

function stopped(run: Run): Promise<never> {
  return new Promise((_, reject) => {
    run.signal.addEventListener('abort', () => reject(run.signal.reason), { once: true });
  });
}
