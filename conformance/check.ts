/** One thing an implementation must do, tried on it as a black box. */
export interface Check<Bench> {
  /** Stable, unique: `callee/lifecycle/complete`. */
  readonly id: string;
  /** What it proves: `HCP-110`, `V-01` … */
  readonly requirements: readonly string[];
  /** Checks that stand or fall together: `lifecycle`, `abort`, `duplicates` … */
  readonly family: string;
  /** What the implementation does, as a sentence. */
  readonly title: string;
  /** Throws, in one sentence, when it does not. */
  run(bench: Bench): Promise<void>;
}

/** Thrown by a check that cannot be tried here. */
export class SkipCheck extends Error {
  override readonly name = 'SkipCheck';
}

export interface CheckResult {
  readonly id: string;
  readonly requirements: readonly string[];
  readonly family: string;
  readonly title: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  /** Why it failed or was skipped. */
  readonly message?: string;
  readonly durationMs: number;
}

export interface Report {
  /** What was checked: `callee lab`, `store ./my-store.js`. */
  readonly subject: string;
  readonly startedAt: string;
  readonly results: readonly CheckResult[];
}
