import { react, type Trigger } from '../session/lifecycle.ts';
import type { SessionRecord } from '../session/record.ts';
import type { Clock } from '../shared/clock.ts';
import { HcpError } from '../shared/errors.ts';
import type { Store, Write } from '../shared/store/store.ts';
import { CallerPause } from './caller-pause.ts';
import type { Saying, Step } from './session-writer.ts';

export interface RestParts {
  readonly clock: Clock;
  readonly store: Store;
  readonly signal: AbortSignal;
  readonly record: () => SessionRecord;
  /** Makes the moves a trigger calls for. Answers whether there were any. */
  readonly move: (
    trigger: Trigger,
    reason: string,
    options?: { readonly pausedBy?: 'caller'; readonly writes?: readonly Write[] },
  ) => Promise<boolean>;
  readonly commit: (step: Step) => Promise<void>;
  /** Rejects unless the work may go on (HCP-308). */
  readonly admit: () => Promise<void>;
  /** Something happened: the idle time starts anew. */
  readonly touch: () => void;
  readonly trouble: (error: unknown) => void;
}

/** When the work of one session rests and goes on: by its executor's wish, its caller's, or for idleness. */
export class SessionRest {
  readonly #parts: RestParts;
  readonly #pause: CallerPause;
  /** Paused for idleness, not by the executor. */
  #suspended = false;
  /** Whether the next resume tells of a restart. */
  isRecovering: boolean;

  constructor(parts: RestParts, isRecovering: boolean) {
    this.#parts = parts;
    this.isRecovering = isRecovering;
    this.#pause = new CallerPause(parts.clock, parts.signal);
    if (parts.record().pausedBy) this.#pause.keep();
  }

  /** Resolves at once or, when the caller wants a pause, after it. */
  safePoint(): Promise<void> {
    return this.#pause.safePoint();
  }

  /** The session is over. */
  end(): void {
    this.#pause.close();
  }

  async pause(): Promise<void> {
    this.#suspended = false;
    await this.#parts.move('pause', 'paused_by_callee');
    this.#parts.touch();
  }

  async resume(): Promise<void> {
    await this.#parts.admit();
    await this.#goOn();
  }

  async suspend(): Promise<void> {
    this.#suspended = true;
    await this.#parts.move('pause', 'idle_timeout');
  }

  /** What was suspended for idleness goes on when it speaks. `undefined`: it was not. */
  wake(): Promise<void> | undefined {
    return this.#suspended && this.#parts.record().state === 'PAUSED' ? this.#goOn() : undefined;
  }

  /** The caller wants a rest, now or at a safe point. Where that does not fit, it is told so (P6). */
  async pauseForCaller(mode: 'drain' | 'immediate', drainMs: number, writes: readonly Write[]): Promise<void> {
    const { record, commit, trouble } = this.#parts;
    // A repeated wish that has come true: commands may come twice.
    if (record().pausedBy === 'caller') return this.#forget(writes);
    if (record().state !== 'RUNNING') return this.#ignore('x-pause', writes);
    if (mode === 'immediate') return this.#restForCaller(writes);
    this.#pause.drain(drainMs, () => this.#drained().catch(trouble));
    // Stored: after a restart it is wanted all the same.
    await commit({ sayings: [], record: { ...record(), pausedBy: 'caller_soon' }, writes: () => writes });
  }

  /** Ends the rest the caller asked for, or the wish for one. */
  async resumeForCaller(writes: readonly Write[]): Promise<void> {
    const { record, move, commit, admit, touch } = this.#parts;
    const { pausedBy } = record();
    if (pausedBy === undefined && !this.#pause.isWanted) return this.#ignore('x-resume', writes);
    if (pausedBy === 'caller') {
      await admit();
      await move('resume', 'resumed_by_caller', { writes });
      this.isRecovering = false;
      this.#pause.end();
    } else {
      // First: a safe point that is reached meanwhile is none any more.
      this.#pause.end();
      await commit({ sayings: [], record: { ...record(), pausedBy: undefined }, writes: () => writes });
    }
    touch();
  }

  async #goOn(): Promise<void> {
    const { record, move, touch } = this.#parts;
    if (record().pausedBy === 'caller') {
      throw new HcpError('session_illegal_transition', 'The caller keeps the session paused');
    }
    this.#suspended = false;
    const reason = this.isRecovering ? 'recovered_from_checkpoint' : 'resumed_by_callee';
    if (await move('resume', reason)) this.isRecovering = false;
    touch();
  }

  /** The work has come to where it may rest, or had the time to. It may rest already, by its own wish. */
  async #drained(): Promise<void> {
    const { record, commit } = this.#parts;
    if (record().state === 'RUNNING') return this.#restForCaller([]);
    await commit({ sayings: [ignored('x-pause', record())], record: { ...record(), pausedBy: undefined } });
  }

  async #restForCaller(writes: readonly Write[]): Promise<void> {
    this.#pause.keep();
    await this.#parts.move('pause', 'paused_by_caller', { pausedBy: 'caller', writes });
  }

  async #ignore(type: string, writes: readonly Write[]): Promise<void> {
    const { record, commit } = this.#parts;
    if (react(record().state, 'emit') !== 'emit') return this.#forget(writes);
    await commit({ sayings: [ignored(type, record())], writes: () => writes });
  }

  /** Nothing to say. */
  async #forget(writes: readonly Write[]): Promise<void> {
    if (writes.length > 0) await this.#parts.store.commit(writes);
  }
}

function ignored(type: string, { state }: SessionRecord): Saying {
  const message = `${type} was ignored: the session is ${state}`;
  return { event: 'log', data: { level: 'info', message, details: {} } };
}
