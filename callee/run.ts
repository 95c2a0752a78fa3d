import type {
  Artifact,
  ErrorData,
  ErrorDetails,
  IntermediateResultData,
  LogData,
  ProgressData,
  RiskLevel,
  TaskSubmitPayload,
  WarningData,
} from '../schemas/types.ts';
import type { Checkpoint } from '../session/checkpoints.ts';
import type { SessionState } from '../session/lifecycle.ts';
import type { Violation } from '../session/record.ts';

/** What an executor is given beside the task. Everything it says resolves when it is durable, not when it is published. */
export interface Run {
  readonly sessionId: string;
  readonly callerId: string;
  readonly state: SessionState;
  /** Fires when the work must stop: abort, time-out, or another instance has the session. */
  readonly signal: AbortSignal;
  /** After a restart: where to continue. */
  readonly resumedFrom: Checkpoint | undefined;
  /** To be asked before each action that matters. */
  readonly guard: Guard;
  progress(data: ProgressData): Promise<void>;
  log(data: LogData): Promise<void>;
  warning(data: WarningData): Promise<void>;
  /** Something went wrong and the work goes on. To end it, throw. */
  error(data: ErrorData): Promise<void>;
  intermediateResult(data: IntermediateResultData): Promise<void>;
  /** Stores where to continue after a crash, and tells the caller that it exists. Answers its id. */
  checkpoint(data: unknown, options: { readonly description: string; readonly resumable?: boolean }): Promise<string>;
  /** A place where the work may rest: resolves at once or, when the caller wants a pause (`pause/1`), after it. */
  safePoint(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Called when the work ends by abort, time-out or failure, the last one given first. */
  onCleanup(work: () => void | Promise<void>): void;
}

/** Stands between an executor and what it does to the world. */
export interface Guard {
  /**
   * Resolves when the action may be done: the session runs, its token is in force, and the action and its parameters are
   * within the safety envelope. Beyond a soft limit it resolves with a `warning` told. Beyond a hard one the emergency
   * procedure runs, the session fails, and it rejects with `safety_violation`: the action must not be done.
   */
  act(
    action: string,
    parameters?: Readonly<Record<string, unknown>>,
    options?: {
      /** How risky this action is by itself: not above what was approved. */
      readonly risk?: RiskLevel;
    },
  ): Promise<void>;
}

/** Brings the equipment into a safe state after a hard limit. Called again when its process was killed: make it idempotent. */
export type Procedure = (violation: Violation, run: Run) => void | Promise<void>;

export interface TaskResult {
  readonly outputs: Record<string, unknown>;
  readonly artifacts?: readonly Artifact[];
}

/** Does the work. What it throws makes the task fail: a {@link TaskFailure} says how, anything else is `execution_error`. */
export type Executor = (task: TaskSubmitPayload, run: Run) => Promise<TaskResult>;

/** Cleans up after an abort. Unlike `run.onCleanup` it is also called when the process that did the work is gone. */
export type Cleanup = (task: TaskSubmitPayload, run: Run) => void | Promise<void>;

export interface FailureOptions {
  readonly partialOutputs?: Record<string, unknown>;
  readonly artifacts?: readonly Artifact[];
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
}

const BRAND = Symbol.for('hcp-sdk.TaskFailure');

/** Thrown by an executor that knows how it failed. */
export class TaskFailure extends Error {
  override readonly name = 'TaskFailure';
  /** `execution_error`, `resource_unavailable`, `input_error` … */
  readonly errorCode: string;
  readonly partialOutputs: Record<string, unknown> | undefined;
  readonly artifacts: readonly Artifact[] | undefined;
  readonly details: ErrorDetails | undefined;

  constructor(errorCode: string, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.errorCode = errorCode;
    this.partialOutputs = options.partialOutputs;
    this.artifacts = options.artifacts;
    this.details = options.details;
    Object.defineProperty(this, BRAND, { value: true });
  }
}

export function isTaskFailure(error: unknown): error is TaskFailure {
  return typeof error === 'object' && error !== null && BRAND in error;
}
