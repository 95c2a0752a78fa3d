import { type Check, type CheckResult, type Report, SkipCheck } from './check.ts';

export interface RunOptions<Bench> {
  readonly subject: string;
  /** A fresh bench for each check: with names of its own, so that nothing of an earlier one is in the way. */
  readonly open: () => Promise<Bench & AsyncDisposable>;
  /** How long one check may take. @default 30000 */
  readonly timeoutMs?: number;
  /** Only these: by id, family or requirement. @default all */
  readonly only?: readonly string[];
  /** Told after each check. */
  readonly onResult?: (result: CheckResult) => void;
  readonly signal?: AbortSignal;
}

/** Tries the checks one after the other. Never throws for what the implementation does. */
export async function runChecks<Bench>(checks: readonly Check<Bench>[], options: RunOptions<Bench>): Promise<Report> {
  const { subject, only = [], onResult, signal } = options;
  const startedAt = new Date().toISOString();
  const results: CheckResult[] = [];
  const isWanted = ({ id, family, requirements }: Check<Bench>) =>
    only.length === 0 || only.some((name) => id === name || family === name || requirements.includes(name));
  for (const check of checks.filter(isWanted)) {
    signal?.throwIfAborted();
    const result = await tryCheck(check, options);
    results.push(result);
    onResult?.(result);
  }
  return { subject, startedAt, results };
}

async function tryCheck<Bench>(
  check: Check<Bench>,
  { open, timeoutMs = 30_000 }: RunOptions<Bench>,
): Promise<CheckResult> {
  const { id, requirements, family, title } = check;
  const startedAt = performance.now();
  const result = (status: CheckResult['status'], message?: string): CheckResult => ({
    ...{ id, requirements, family, title, status, durationMs: Math.round(performance.now() - startedAt) },
    ...(message !== undefined && { message }),
  });
  const done = new AbortController();
  try {
    await using bench = await open();
    await Promise.race([check.run(bench), tooLong(timeoutMs, done.signal)]);
    return result('passed');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return result(error instanceof SkipCheck ? 'skipped' : 'failed', message);
  } finally {
    done.abort();
  }
}

function tooLong(timeoutMs: number, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(new Error(`It took more than ${timeoutMs} ms`)), timeoutMs);
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  });
}
