import { Worker } from 'node:worker_threads';
import { HcpError } from '../errors.ts';
import { boundedSchemaText, type SchemaBounds } from './bounds.ts';
import type { Job } from './worker.ts';

export interface SandboxOptions extends Partial<SchemaBounds> {
  /** How long one compilation or validation may run. @default 1000 */
  readonly deadlineMs?: number;
  /** Heap of the thread. @default 64 */
  readonly memoryMb?: number;
}

/** Whether a value fits a schema; if not, where and why. Never holds the value. */
export type Verdict =
  | { readonly valid: true }
  | { readonly valid: false; readonly pointer: string; readonly message: string };

/**
 * Where schemas we did not write are compiled and run: to ajv a schema is code, and a pattern such as `^(a+)+$` stalls
 * whoever runs it. Here that is a thread with a deadline and a memory cap; the process never waits for it.
 */
export interface SchemaSandbox extends AsyncDisposable {
  /** Rejects with `schema_refused` when the schema is out of bounds or no schema, `schema_overrun` when it takes too long. */
  check(schema: unknown): Promise<void>;
  /** Rejects as `check` does. `value` must be JSON. */
  validate(schema: unknown, value: unknown): Promise<Verdict>;
  /** Stops the thread. Idempotent; what still waits is refused. */
  close(): Promise<void>;
}

interface Waiting {
  readonly job: Job;
  readonly resolve: (verdict: Verdict) => void;
  readonly reject: (error: unknown) => void;
}

export function createSchemaSandbox(options: SandboxOptions = {}): SchemaSandbox {
  const { deadlineMs = 1000, memoryMb = 64, bytes = 64 * 1024, depth = 32 } = options;
  for (const [name, value] of Object.entries({ deadlineMs, memoryMb, bytes, depth })) {
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError(`${name} must be a positive integer`);
  }
  const waiting: Waiting[] = [];
  let worker: Worker | undefined;
  let ready = false;
  let current: Waiting | undefined;
  let deadline: NodeJS.Timeout | undefined;
  let closed = false;

  return {
    async check(schema) {
      await run({ schemaText: boundedSchemaText(schema, { bytes, depth }), valueText: undefined });
    },
    async validate(schema, value) {
      return run({ schemaText: boundedSchemaText(schema, { bytes, depth }), valueText: JSON.stringify(value) });
    },
    close,
    [Symbol.asyncDispose]: close,
  };

  function run(job: Job): Promise<Verdict> {
    if (closed) return Promise.reject(new HcpError('schema_refused', 'The schema sandbox is closed'));
    return new Promise((resolve, reject) => {
      waiting.push({ job, resolve, reject });
      next();
    });
  }

  /** One job at a time: a deadline then always means the job it was set for. */
  function next(): void {
    if (current !== undefined || waiting.length === 0) return;
    if (worker === undefined) start();
    if (!ready) return;
    current = waiting.shift() as Waiting;
    worker?.ref();
    worker?.postMessage(current.job);
    deadline = setTimeout(() => overrun(`more than ${deadlineMs} ms`), deadlineMs);
  }

  function start(): void {
    // Source and build differ in their file ending.
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js';
    const thread = new Worker(new URL(file, import.meta.url), {
      resourceLimits: {
        maxOldGenerationSizeMb: memoryMb,
        maxYoungGenerationSizeMb: Math.ceil(memoryMb / 4),
        stackSizeMb: 4,
      },
      // Nothing of the host's flags or environment is needed in there.
      env: {},
      execArgv: [],
    });
    worker = thread;
    ready = false;
    thread.on('message', (answer: 'ready' | Verdict | { readonly unusable: string }) => {
      if (thread !== worker) return;
      if (answer === 'ready') ready = true;
      else settle(answer);
      next();
    });
    thread.on('error', (error) => {
      if (thread === worker) overrun(`more than ${memoryMb} MB`, error);
    });
  }

  function settle(answer: Verdict | { readonly unusable: string }): void {
    const done = take();
    worker?.unref();
    if ('unusable' in answer) {
      done?.reject(new HcpError('schema_refused', `The schema is refused: it cannot be compiled: ${answer.unusable}`));
    } else done?.resolve(answer);
  }

  function overrun(what: string, cause?: Error): void {
    const thread = worker;
    worker = undefined;
    ready = false;
    void thread?.terminate();
    const victim = take() ?? waiting.shift();
    victim?.reject(new HcpError('schema_overrun', `The schema was stopped: it takes ${what}`, { cause }));
    next();
  }

  function take(): Waiting | undefined {
    clearTimeout(deadline);
    const done = current;
    current = undefined;
    return done;
  }

  async function close(): Promise<void> {
    closed = true;
    const thread = worker;
    worker = undefined;
    for (const left of [take(), ...waiting.splice(0)]) {
      left?.reject(new HcpError('schema_refused', 'The schema sandbox is closed'));
    }
    await thread?.terminate();
  }
}
