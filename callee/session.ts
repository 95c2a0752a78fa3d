import type { TaskFailedPayload, TaskSubmit } from '../schemas/types.ts';
import { type Checkpoint, deleteCheckpoint, draftCheckpoint, insertCheckpoint } from '../session/checkpoints.ts';
import {
  advance,
  isTerminal,
  type Move,
  movesFor,
  react,
  refuseUnless,
  type SessionState,
  type Trigger,
} from '../session/lifecycle.ts';
import type { LogTail } from '../session/log.ts';
import type { SessionRecord } from '../session/record.ts';
import { formatDuration } from '../shared/durations.ts';
import { HcpError } from '../shared/errors.ts';
import type { BuiltMessage } from '../shared/messages/build.ts';
import type { Write } from '../shared/store/store.ts';
import type { OfferedCapability } from './capabilities.ts';
import { CheckpointShelf } from './checkpoint-shelf.ts';
import { Cleanups } from './cleanups.ts';
import { ExecutionLedger } from './execution-ledger.ts';
import type { Rejection, Terms } from './gate.ts';
import type { Host } from './host.ts';
import type { Run, TaskResult } from './run.ts';
import { acceptance, failureOf, isUnsayable, journey, messageOf, stateChanged } from './sayings.ts';
import { SessionTimers } from './session-timers.ts';
import { type Saying, SessionWriter, type Step } from './session-writer.ts';

/** A session that runs here: decides, by the lifecycle's rules, what is said and done about everything that happens to it. */
export class LiveSession {
  readonly task: TaskSubmit['payload'];
  readonly #host: Host;
  readonly #writer: SessionWriter;
  readonly #ledger: ExecutionLedger;
  readonly #timers: SessionTimers;
  readonly #stop = new AbortController();
  readonly #cleanups = new Cleanups();
  readonly #shelf: CheckpointShelf;
  readonly #resumedFrom: Checkpoint | undefined;
  /** Whether the next resume tells of a restart. */
  #recovering: boolean;
  /** Paused for idleness, not by the executor. */
  #suspended = false;
  #leaving = false;
  #waitingForRoom = 0;
  #execution: Promise<void> = Promise.resolve();
  #ending: Promise<void> = Promise.resolve();

  /** `recovered`: the checkpoints of an earlier life, newest first. */
  constructor(host: Host, record: SessionRecord, tail: LogTail, recovered?: readonly Checkpoint[]) {
    this.#host = host;
    this.task = (JSON.parse(record.request) as TaskSubmit).payload; // parsed and checked when it came
    this.#writer = new SessionWriter(host, record, tail, () => this.#lost());
    this.#ledger = new ExecutionLedger(host, record, recovered !== undefined);
    this.#shelf = new CheckpointShelf(recovered ?? [], host.settings.keptCheckpoints);
    this.#resumedFrom = recovered?.find(({ resumable }) => resumable);
    this.#recovering = recovered !== undefined;
    this.#timers = new SessionTimers(host.clock, {
      onDeadline: () => this.#inBackground(this.#expire()),
      onIdle: () => this.#inBackground(this.#becomeIdle()),
    });
  }

  get record(): SessionRecord {
    return this.#writer.record;
  }

  get state(): SessionState {
    return this.record.state;
  }

  /** `undefined` before it is accepted, and in a process that does not offer it. */
  get capability(): OfferedCapability | undefined {
    return this.#host.capabilities.get(this.task.capability, this.record.version);
  }

  /** Whether another instance can continue it. */
  get isResumable(): boolean {
    return this.#shelf.isResumable;
  }

  get #isLate(): boolean {
    return (this.record.deadlineAt ?? Number.POSITIVE_INFINITY) <= this.#host.clock.now();
  }

  /** Resolves when nothing of it runs here any more. */
  async ended(): Promise<void> {
    await this.#execution;
    await this.#ending;
  }

  async accept(terms: Terms, token: string): Promise<void> {
    const { clock, settings } = this.#host;
    const [move] = movesFor(this.state, 'approved') as [Move]; // throws unless there is one
    const now = clock.now();
    const record: SessionRecord = {
      ...this.#writer.in(advance(this.state, move)),
      token,
      version: terms.capability.declaration.version,
      riskLevel: terms.riskLevel,
      maxDurationMs: terms.maxDurationMs,
      extensions: terms.extensions,
      runningSince: now,
      deadlineAt: now + Math.min(terms.maxDurationMs, settings.tokenLifetimeMs),
    };
    const { abortTimeoutMs } = settings;
    const sayings = acceptance(terms, { token, inReplyTo: record.messageId, abortTimeoutMs });
    await this.#writer.commit({ sayings, record, writes: (built) => [this.#answer(built)] });
    this.#host.telemetry.accepted(record);
  }

  async reject(rejection: Rejection): Promise<void> {
    const [move] = movesFor(this.state, 'rejected') as [Move]; // throws unless there is one
    const record = this.#writer.in(advance(this.state, move));
    const saying: Saying = { type: 'task_rejected', payload: { ...rejection, in_reply_to: record.messageId } };
    await this.#writer.commit({ sayings: [saying], record, writes: (built) => [this.#answer(built)] });
    this.#over(rejection.reason_code);
  }

  /** Starts the executor, with whatever may stop it armed first. Past the deadline, which ends it at once, nothing runs. */
  start(capability: OfferedCapability): void {
    this.#timers.deadlineAt(this.record.deadlineAt);
    this.#touch();
    if (!this.#isLate) this.#execution = this.#execute(capability);
  }

  /**
   * Stops the work for good. Resolves when that is durable, together with `writes`; cleaning up goes on. Answers whether
   * there was anything to stop.
   */
  async abort(writes: readonly Write[] = []): Promise<boolean> {
    if (typeof react(this.state, 'abort') !== 'object') return false;
    const moved = this.#move('abort', 'abort_requested', { writes });
    this.#stop.abort(new HcpError('session_closed', 'The caller aborted the session'));
    this.#timers.clear();
    this.#ending = moved.then(
      () => this.#finishAbort(),
      () => {}, // told to whoever waits for the abort
    );
    return moved;
  }

  /** Says what its caller asked for, in its stream. No sign of life: the idle time goes on. Throws when that has ended. */
  async answer(sayings: (lastSequence: number) => readonly Saying[], writes: readonly Write[]): Promise<void> {
    this.#refuseLeaving();
    refuseUnless(this.state, 'emit');
    await this.#writer.commit({ sayings: sayings(this.#writer.sequence), writes: () => writes });
  }

  /** After a restart in ABORTING: the same again, with a new timer. */
  cleanUpAgain(): void {
    this.#stop.abort(new HcpError('session_closed', 'The caller aborted the session'));
    this.#ending = this.#finishAbort();
  }

  /** Makes a stored session ours, with what its state calls for (hcp.md 4.3). Answers what is left to do. */
  async takeOver(takenFrom: { owner: string; epoch: number }): Promise<'judge' | 'start' | 'clean' | 'over'> {
    const resumable = this.#resumedFrom !== undefined && this.capability !== undefined;
    const reaction = react(this.state, resumable ? 'restartResumable' : 'restart');
    if (typeof reaction === 'object') {
      if (reaction.moves.at(-1) !== 'fail') return this.#recover(takenFrom);
      await this.#fail('restart', 'callee_restarted', unrecoverable(this.capability), { takenFrom });
      return 'over';
    }
    await this.#writer.commit({ sayings: [], record: this.record, takenFrom });
    if (reaction === 'judge' || reaction === 'clean') return reaction;
    return reaction === 'stay' ? 'start' : 'over';
  }

  /** Publishes again what an earlier life may not have got through. */
  republish(): Promise<void> {
    return this.#writer.republish();
  }

  /** Stops the work here without ending the session. */
  leave(): void {
    if (isTerminal(this.state) || this.state === 'ABORTING') return;
    this.#leaving = true;
    this.#timers.clear();
    this.#stop.abort(handedOver());
  }

  /** Another instance has the session. */
  lose(): void {
    this.#writer.lose();
  }

  #answer([answer]: readonly BuiltMessage[]): Write {
    const { calleeId, callerId, messageId } = this.record;
    const body = answer?.body.toString() ?? null;
    return { patch: 'answers', key: [calleeId, callerId, messageId], set: { answer: body } };
  }

  async #execute(capability: OfferedCapability): Promise<void> {
    try {
      const result = await this.#writer.inTrace(() => capability.executor(this.task, this.#run()));
      await this.#succeed(capability, result);
    } catch (error) {
      this.#inBackground(this.#failWith(error));
    }
  }

  #run(): Run {
    const session = this;
    return {
      sessionId: this.record.sessionId,
      callerId: this.record.callerId,
      get state() {
        return session.state;
      },
      signal: this.#stop.signal,
      resumedFrom: this.#resumedFrom,
      progress: (data) => this.#emit({ event: 'progress', data }),
      log: (data) => this.#emit({ event: 'log', data: { details: {}, ...data } }),
      warning: (data) => this.#emit({ event: 'warning', data: { details: {}, ...data } }),
      error: (data) => this.#emit({ event: 'error', data }),
      intermediateResult: (data) => this.#emit({ event: 'intermediate_result', data }),
      checkpoint: (data, options) => this.#checkpoint(data, options),
      pause: () => this.#pause(),
      resume: () => this.#resume(),
      onCleanup: (work) => this.#cleanups.add(work),
    };
  }

  async #emit(saying: Saying, step: Omit<Step, 'sayings'> = {}): Promise<void> {
    await this.#roomInOutbox();
    this.#refuseLeaving();
    // Not awaited before it is said: what is said meanwhile would overtake it.
    const resumed = this.#suspended && this.state === 'PAUSED' ? this.#resume() : undefined;
    refuseUnless(this.state, 'event' in saying && saying.event === 'checkpoint_created' ? 'checkpoint' : 'emit');
    const writes = (built: readonly BuiltMessage[]) => {
      // Called once it is known to be valid: what is refused does not count.
      this.#ledger.count(saying);
      return step.writes?.(built) ?? [];
    };
    await Promise.all([resumed, this.#writer.commit({ ...step, sayings: [saying], writes })]);
    this.#touch();
  }

  /** Waiting for the broker is not idleness. */
  async #roomInOutbox(): Promise<void> {
    this.#waitingForRoom++;
    await this.#host.outbox.room();
    this.#waitingForRoom--;
  }

  async #checkpoint(data: unknown, options: { description: string; resumable?: boolean }): Promise<string> {
    const { settings, clock } = this.#host;
    const { description, resumable = true } = options;
    const maxBytes = settings.maxCheckpointBytes;
    const draft = draftCheckpoint(data, { description, resumable, now: clock.now(), maxBytes });
    const { checkpointId, createdAt } = draft;
    const { sessionId } = this.record;
    const writes = ([built]: readonly BuiltMessage[]): Write[] => {
      const message = built?.message;
      const sequence = message?.type === 'event' ? message.payload.sequence : 0;
      const superfluous = this.#shelf.add({ checkpointId, resumable });
      const deletes = superfluous.map((old) => deleteCheckpoint(sessionId, old));
      return [insertCheckpoint(sessionId, sequence, draft), ...deletes];
    };
    const told = { checkpoint_id: checkpointId, description, resumable, created_at: createdAt };
    await this.#emit({ event: 'checkpoint_created', data: told }, { writes });
    return checkpointId;
  }

  async #pause(): Promise<void> {
    this.#suspended = false;
    await this.#move('pause', 'paused_by_callee');
    this.#touch();
  }

  async #resume(): Promise<void> {
    this.#suspended = false;
    const reason = this.#recovering ? 'recovered_from_checkpoint' : 'resumed_by_callee';
    if (await this.#move('resume', reason)) this.#recovering = false;
    this.#touch();
  }

  async #succeed(capability: OfferedCapability, result: TaskResult): Promise<void> {
    const fault = await this.#host.outputFault(capability, this.task, result);
    if (fault !== undefined) {
      return this.#fail('outputsInvalid', 'execution_error', invalidOutputs(fault, result));
    }
    const { outputs, artifacts } = result;
    const execution_summary = await this.#ledger.summary();
    const payload = { outputs, ...(artifacts && { artifacts: [...artifacts] }), execution_summary };
    try {
      await this.#move('succeeded', 'task_completed', { result: { type: 'task_completed', payload } });
    } catch (error) {
      if (!isUnsayable(error)) throw error;
      await this.#fail('outputsInvalid', 'execution_error', invalidOutputs(error.message));
    }
  }

  async #failWith(error: unknown): Promise<void> {
    // Told to stop because the session goes on elsewhere, or is over: that is no failure.
    if (this.#leaving || this.#writer.isLost || isTerminal(this.state)) return;
    this.#log(this.state === 'ABORTING' ? 'info' : 'warn', error, 'The executor threw');
    const failure = failureOf(error);
    try {
      await this.#fail('failed', failure.error_code, failure);
    } catch (unsayable) {
      if (!isUnsayable(unsayable)) throw unsayable;
      const plain = failureOf(new Error('The task failed, and what it said of it does not fit into a message'));
      await this.#fail('failed', plain.error_code, plain);
    }
  }

  async #expire(): Promise<void> {
    await this.#fail('expired', 'timeout', {
      error_code: 'timeout',
      error_message: 'The task took longer than it may',
      error_details: { recoverable: this.isResumable },
    });
  }

  async #becomeIdle(): Promise<void> {
    const { onIdle, idleGraceMs } = this.#host.settings;
    if (this.#waitingForRoom > 0) return this.#touch();
    if (onIdle === 'suspend' && this.state === 'RUNNING') {
      this.#suspended = true;
      this.#timers.idleIn(idleGraceMs);
      await this.#move('pause', 'idle_timeout');
      return;
    }
    await this.#fail('idle', 'idle_timeout', {
      error_code: 'timeout',
      error_message: 'The task said nothing for too long',
    });
  }

  async #fail(trigger: Trigger, reason: string, payload: TaskFailedPayload, step: Partial<Step> = {}): Promise<void> {
    const execution_summary = await this.#ledger.summary();
    // Only now: meanwhile it may have paused, resumed or ended.
    const moves = isTerminal(this.state) ? [] : movesFor(this.state, trigger);
    if (moves.length === 0) return;
    const { newest } = this.#shelf;
    const error_details = { ...(newest !== undefined && { last_checkpoint: newest }), ...payload.error_details };
    const result: Saying = { type: 'task_failed', payload: { ...payload, error_details, execution_summary } };
    await this.#follow(moves, reason, { ...step, result });
    this.#stop.abort(new HcpError('session_closed', `The session failed: ${reason}`));
    this.#ending = this.#cleanUp().catch((error: unknown) => {
      // Best effort: the session is over, nobody else hears of it.
      this.#log('error', error, 'Cleaning up after a failure failed');
    });
  }

  async #finishAbort(): Promise<void> {
    const { abortTimeoutMs } = this.#host.settings;
    const timedOut = this.#timers.after(abortTimeoutMs);
    const outcome = await Promise.race([this.#cleanUp().then(() => 'done' as const), timedOut]).catch(
      (error: unknown) => ({ error }),
    );
    try {
      if (outcome === 'done') await this.#move('cleanedUp', 'cleanup_complete');
      else if (outcome === 'timed out')
        await this.#move('cleanupTimedOut', 'abort_timeout', { before: late(abortTimeoutMs) });
      else {
        this.#log('error', outcome.error, 'Cleaning up failed');
        await this.#move('cleanedUp', 'cleanup_failed', { before: unclean(outcome.error) });
      }
    } catch (error) {
      if (!this.#writer.isLost) this.#log('error', error, 'An aborted session could not be closed');
    }
  }

  async #cleanUp(): Promise<void> {
    await this.#execution;
    await this.#cleanups.run(() => this.capability?.cleanup?.(this.task, this.#run()));
  }

  async #recover(takenFrom: { owner: string; epoch: number }): Promise<'start'> {
    // Past its deadline it stays PAUSED: the timer fires at once and ends it.
    const isLate = this.#isLate;
    const sayings = [stateChanged('RUNNING', 'PAUSED', 'callee_restarted')];
    if (!isLate) sayings.push(stateChanged('PAUSED', 'RUNNING', 'recovered_from_checkpoint'));
    await this.#writer.commit({ sayings, record: this.#writer.in(isLate ? 'PAUSED' : 'RUNNING'), takenFrom });
    this.#recovering = isLate;
    return 'start';
  }

  /** Makes the moves a trigger calls for. Answers whether there were any. */
  async #move(
    trigger: Trigger,
    reason: string,
    step: { before?: readonly Saying[]; result?: Saying; writes?: readonly Write[] } = {},
  ): Promise<boolean> {
    this.#refuseLeaving();
    const moves = movesFor(this.state, trigger);
    if (moves.length === 0) return false;
    const { before, result, writes = [] } = step;
    await this.#follow(moves, reason, { ...(before && { before }), ...(result && { result }), writes: () => writes });
    return true;
  }

  async #follow(
    moves: readonly Move[],
    reason: string,
    { before = [], result, ...step }: { before?: readonly Saying[]; result?: Saying } & Omit<Partial<Step>, 'sayings'>,
  ): Promise<void> {
    const { state, sayings } = journey(this.state, moves, reason, result);
    await this.#writer.commit({ ...step, sayings: [...before, ...sayings], record: this.#writer.in(state) });
    if (isTerminal(state)) this.#over(reason);
  }

  #over(reason: string): void {
    this.#timers.clear();
    this.#host.telemetry.ended(this.record, reason);
    this.#host.forget(this);
  }

  #lost(): void {
    this.#timers.clear();
    this.#stop.abort(new HcpError('session_taken_over', 'Another instance of this callee has the session now'));
    this.#host.lost(this);
  }

  #refuseLeaving(): void {
    if (this.#leaving) throw handedOver();
  }

  #touch(): void {
    const { idleTimeoutMs } = this.#host.settings;
    if (idleTimeoutMs !== undefined && !isTerminal(this.state)) this.#timers.idleIn(idleTimeoutMs);
  }

  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (!this.#writer.isLost) this.#log('error', error, 'A session could not do what was due');
    });
  }

  #log(level: 'info' | 'warn' | 'error', error: unknown, message: string): void {
    const { sessionId: session_id, messageId: message_id, callerId: caller_id, state } = this.record;
    const { sequence } = this.#writer;
    this.#host.logger[level]({ session_id, message_id, caller_id, state, sequence, err: error }, message);
  }
}

function handedOver(): HcpError<'session_handed_over'> {
  return new HcpError('session_handed_over', 'This callee is closing; the session continues elsewhere');
}

function unrecoverable(capability: OfferedCapability | undefined): TaskFailedPayload {
  return {
    error_code: 'internal_error',
    error_message: capability
      ? 'The callee was restarted, and there is no checkpoint to continue from'
      : 'The callee was restarted without the capability this task needs',
  };
}

/** `result`: what is worth showing as partial outputs. */
function invalidOutputs(fault: string, result?: TaskResult): TaskFailedPayload {
  const outputs: unknown = result?.outputs;
  const isObject = typeof outputs === 'object' && outputs !== null && !Array.isArray(outputs);
  return {
    error_code: 'execution_error',
    error_message: fault,
    error_details: { phase: 'output_validation' },
    ...(isObject && result && { partial_outputs: result.outputs }),
  };
}

function late(timeoutMs: number): Saying[] {
  const message = `Cleaning up took more than ${formatDuration(timeoutMs)}`;
  return [{ event: 'warning', data: { code: 'abort_timeout', message, details: {} } }];
}

function unclean(error: unknown): Saying[] {
  const message = messageOf(error, 'Cleaning up failed');
  return [{ event: 'error', data: { code: 'cleanup_failed', message, recoverable: false } }];
}
