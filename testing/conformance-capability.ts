import { setTimeout as delay } from 'node:timers/promises';
import { type CapabilityOptions, type Executor, type Run, TaskFailure, type TaskResult } from '../callee/index.ts';
import type { Capability } from '../schemas/types.ts';

/** One step of a script: its name as the only key. */
type Step = Readonly<Record<string, unknown>>;

const STEPS = [
  'progress',
  'log',
  'warning',
  'error',
  'intermediate_result',
  'checkpoint',
  'pause',
  'resume',
  'sleep_ms',
  'cleanup_ms',
  'fail',
  'hang',
  'complete',
] as const;

const DECLARATION: Capability = {
  name: 'hcp.conformance',
  version: '1.0.0',
  description: 'Does what its script says, so that an implementation can be checked from outside',
  input_schema: {
    type: 'object',
    required: ['script'],
    properties: {
      script: {
        type: 'array',
        maxItems: 10_000,
        items: { type: 'object', minProperties: 1, maxProperties: 1, propertyNames: { enum: [...STEPS] } },
      },
    },
  },
  output_schema: { type: 'object' },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
  extensions: ['pause/1', 'resume/1'],
};

/** The capability the conformance kit asks of an implementation, for a callee of this SDK. */
export function conformanceCapability(): {
  readonly declaration: Capability;
  readonly executor: Executor;
  readonly options: CapabilityOptions;
} {
  return { declaration: DECLARATION, executor: follow, options: {} };
}

/** After a restart it goes on behind its last checkpoint. */
const follow: Executor = async ({ inputs }, run) => {
  const script = inputs.script as readonly Step[]; // by the schema
  const from = (run.resumedFrom?.data as { next: number } | undefined)?.next ?? 0;
  for (const [offset, step] of script.slice(from).entries()) {
    await run.safePoint();
    run.signal.throwIfAborted();
    const result = await perform(step, from + offset, run);
    if (result) return result;
  }
  return { outputs: {} };
};

async function perform(step: Step, index: number, run: Run): Promise<TaskResult | undefined> {
  const [[name, value] = ['', undefined]] = Object.entries(step);
  // What it is given is checked where it is said: a script may say what it must not, to see that it is refused.
  const data = value as never;
  switch (name) {
    case 'progress':
      return void (await run.progress(data));
    case 'log':
      return void (await run.log(data));
    case 'warning':
      return void (await run.warning(data));
    case 'error':
      return void (await run.error(data));
    case 'intermediate_result':
      return void (await run.intermediateResult(data));
    case 'checkpoint': {
      const {
        description,
        data: kept,
        resumable = true,
      } = value as { description: string; data?: unknown; resumable?: boolean };
      return void (await run.checkpoint({ next: index + 1, data: kept ?? null }, { description, resumable }));
    }
    case 'pause':
      return void (await run.pause());
    case 'resume':
      return void (await run.resume());
    case 'sleep_ms':
      return void (await delay(Number(value), undefined, { signal: run.signal }));
    case 'cleanup_ms':
      return run.onCleanup(() => delay(Number(value)).then(() => {})) as undefined;
    case 'fail': {
      const { code, message } = value as { code: string; message: string };
      throw new TaskFailure(code, message);
    }
    case 'hang':
      return hang(run.signal);
    default:
      return { outputs: (value as { outputs?: Record<string, unknown> }).outputs ?? {} };
  }
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
