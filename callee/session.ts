import type { TaskFailedPayload, TaskSubmit } from '../schemas/types.ts';
import type { AuditDraft } from '../session/audit/index.ts';
import { type Checkpoint, draftCheckpoint } from '../session/checkpoints.ts';
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
import { HcpError } from '../shared/errors.ts';
import type { BuiltMessage } from '../shared/messages/build.ts';
import type { Write } from '../shared/store/store.ts';
import type { Approval } from './approvals/approval.ts';
import * as notes from './audit-notes.ts';
import type { OfferedCapability } from './capabilities.ts';
import { CheckpointShelf } from './checkpoint-shelf.ts';
import { Cleanups } from './cleanups.ts';
import { ExecutionLedger } from './execution-ledger.ts';
import { freeSlot } from './gate/capacity.ts';
import type { Rejection, Terms } from './gate/gate.ts';
import type { Host } from './host.ts';
import type { Run, TaskResult } from './run.ts';
import {
  beyondLimit,
  failureOf,
  invalidOutputs,
  isUnsayable,
  journey,
  late,
  SAID_NOTHING,
  stateChanged,
  tookTooLong,
  unclean,
  unrecoverable,
} from './sayings.ts';
import { SessionRest } from './session-rest.ts';
import { SessionSafety } from './session-safety.ts';
import { SessionTimers } from './session-timers.ts';
import { type Saying, SessionWriter, type Step } from './session-writer.ts';
import { type Admission, acceptanceStep, approvalStep, rejectionStep } from './steps.ts';

/** What else happens with a move. */
interface MoveOptions {
  readonly before?: readonly Saying[];
  readonly result?: Saying;
  readonly writes?: readonly Write[];
  readonly audit?: readonly AuditDraft[];
  readonly pausedBy?: 'caller';
}

/** A session that runs here: decides, by the lifecycle's rules, what is said and done about everything that happens to it. */
export class LiveSession {
  readonly task: TaskSubmit['payload'];
  /** Whether it was stored by an earlier life. */
  readonly isRecovered: boolean;
  readonly #host: Host;
  readonly #writer: SessionWriter;
  readonly #ledger: ExecutionLedger;
  readonly #timers: SessionTimers;
  readonly #stop = new AbortController();
  readonly #cleanups = new Cleanups();
  readonly #shelf: CheckpointShelf;
  readonly rest: SessionRest;
  readonly safety: SessionSafety;
  #resumedFrom: Checkpoint | undefined;
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
    this.isRecovered = recovered !== undefined;
    this.rest = new SessionRest(
      {
        ...{ clock: host.clock, store: host.store, signal: this.#stop.signal, record: () => this.record },
        move: (trigger, reason, options) => this.#move(trigger, reason, options),
        commit: (step) => this.#writer.commit(step),
        admit: () => this.safety.admit('resume'),
        touch: () => this.#touch(),
        trouble: (error) => this.#trouble(error),
      },
      this.isRecovered,
    );
    this.safety = new SessionSafety({
      ...{ host, task: this.task, stop: this.#stop, record: () => this.record },
      procedures: () => this.capability?.procedures ?? {},
      run: () => this.#run({ afterwards: true }),
      unpaused: async () => {
        await this.rest.wake(); // acting is a sign of life
        this.#touch();
        await this.rest.safePoint();
      },
      onTakenOver: () => this.lose(),
      onViolated: () => this.#timers.clear(),
      commit: (step) => this.#writer.commit(step),
      warn: (violation) => this.#emit({ event: 'warning', data: beyondLimit(violation) }),
      expire: () => this.#expire(),
      fail: (payload) => this.#fail('violated', 'safety_violation', payload),
      log: (error, message) => this.#log('error', error, message),
    });
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

  /** A human decides. */
  async awaitApproval(terms: Terms, approval: Approval): Promise<void> {
    await this.#writer.commit(approvalStep(this.record, terms, approval));
  }

  async accept(admission: Omit<Admission, 'abortTimeoutMs'>): Promise<void> {
    const { abortTimeoutMs } = this.#host.settings;
    const [move] = movesFor(this.state, 'approved') as [Move]; // throws unless there is one
    const running = this.#writer.in(advance(this.state, move));
    await this.#writer.commit(acceptanceStep(running, this.task, { ...admission, abortTimeoutMs }));
    const { resumeFrom } = admission.terms;
    if (resumeFrom) this.#shelf.add(resumeFrom);
    this.#resumedFrom = resumeFrom;
    this.#host.logAccess(this.record);
    this.#host.telemetry.accepted(this.record);
  }

  /** `writes`: whatever else is over with it. */
  async reject(rejection: Rejection, writes: readonly Write[] = []): Promise<void> {
    const [move] = movesFor(this.state, 'rejected') as [Move]; // throws unless there is one
    const rejected = this.#writer.in(advance(this.state, move));
    await this.#writer.commit(rejectionStep(rejected, this.task, rejection, writes));
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
  async abort(reason: string | undefined, writes: readonly Write[] = []): Promise<boolean> {
    if (typeof react(this.state, 'abort') !== 'object') return false;
    const audit = [notes.abortNote(this.record, reason)];
    const moved = this.#move('abort', 'abort_requested', { writes, audit });
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
    const { violation } = this.record;
    this.#ending = Promise.resolve(violation && this.safety.emergency(violation))
      .catch((error: unknown) => this.#trouble(error))
      .then(() => this.#finishAbort());
  }

  /** Makes a stored session ours, with what its state calls for (hcp.md 4.3). Answers what is left to do. */
  async takeOver(takenFrom: {
    owner: string;
    epoch: number;
  }): Promise<'judge' | 'start' | 'clean' | 'violated' | 'over'> {
    if (this.record.violation && (this.state === 'RUNNING' || this.state === 'PAUSED')) {
      await this.#writer.commit({ sayings: [], record: this.record, takenFrom });
      return 'violated';
    }
    const resumable = this.#resumedFrom !== undefined && this.capability !== undefined;
    const reaction = react(this.state, resumable ? 'restartResumable' : 'restart');
    if (typeof reaction === 'object') {
      if (reaction.moves.at(-1) !== 'fail') return this.#recover(takenFrom);
      await this.#fail('restart', 'callee_restarted', unrecoverable(this.capability), { takenFrom });
      return 'over';
    }
    const goesOn = reaction === 'stay';
    const audit = goesOn ? notes.accessAgainNotes(this.record, this.task) : [];
    await this.#writer.commit({ sayings: [], record: this.record, takenFrom, audit });
    if (goesOn) this.#host.logAccess(this.record);
    if (reaction === 'judge' || reaction === 'clean') return reaction;
    return goesOn ? 'start' : 'over';
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

  async #execute(capability: OfferedCapability): Promise<void> {
    try {
      await this.rest.safePoint();
      await this.safety.admit('start');
      const result = await this.#writer.inTrace(() => capability.executor(this.task, this.#run()));
      await this.#succeed(capability, result);
    } catch (error) {
      this.#inBackground(this.#failWith(error));
    }
  }

  /** `afterwards`: for cleaning up, which must be able to act when the work must not. */
  #run({ afterwards = false } = {}): Run {
    const session = this;
    return {
      sessionId: this.record.sessionId,
      callerId: this.record.callerId,
      get state() {
        return session.state;
      },
      signal: this.#stop.signal,
      resumedFrom: this.#resumedFrom,
      guard: afterwards ? this.safety.cleanupGuard : this.safety.guard,
      progress: (data) => this.#emit({ event: 'progress', data }),
      log: (data) => this.#emit({ event: 'log', data: { details: {}, ...data } }),
      warning: (data) => this.#emit({ event: 'warning', data: { details: {}, ...data } }),
      error: (data) => this.#emit({ event: 'error', data }),
      intermediateResult: (data) => this.#emit({ event: 'intermediate_result', data }),
      checkpoint: (data, options) => this.#checkpoint(data, options),
      safePoint: () => this.rest.safePoint(),
      pause: () => this.rest.pause(),
      resume: () => this.rest.resume(),
      onCleanup: (work) => this.#cleanups.add(work),
    };
  }

  async #emit(saying: Saying, step: Omit<Step, 'sayings'> = {}): Promise<void> {
    await this.#roomInOutbox();
    this.#refuseLeaving();
    refuseUnless(this.state, 'event' in saying && saying.event === 'checkpoint_created' ? 'checkpoint' : 'emit');
    // Not awaited before it is said: what is said meanwhile would overtake it.
    const resumed = this.rest.wake();
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
    const { checkpointId: checkpoint_id, createdAt: created_at } = draft;
    const writes = (built: readonly BuiltMessage[]) => this.#shelf.store(this.record.sessionId, draft, built);
    await this.#emit(
      { event: 'checkpoint_created', data: { checkpoint_id, description, resumable, created_at } },
      { writes },
    );
    return checkpoint_id;
  }

  async #succeed(capability: OfferedCapability, result: TaskResult): Promise<void> {
    const fault = await this.#host.outputFault(capability, this.task, result);
    const execution_summary = await this.#ledger.summary(this.record);
    if (this.safety.isViolated) return; // it fails, whatever the executor made of it
    if (fault !== undefined) return this.#failOutputs(fault, result);
    const { outputs, artifacts } = result;
    const payload = { outputs, ...(artifacts && { artifacts: [...artifacts] }), execution_summary };
    try {
      await this.#move('succeeded', 'task_completed', { result: { type: 'task_completed', payload } });
    } catch (error) {
      if (!isUnsayable(error)) throw error;
      await this.#failOutputs(error.message, { outputs });
    }
  }

  /** With what the task has made, as far as that fits into a message (D-38, HCP-127). */
  async #failOutputs(fault: string, result: TaskResult): Promise<void> {
    try {
      await this.#fail('outputsInvalid', 'execution_error', invalidOutputs(fault, result));
    } catch (error) {
      if (!isUnsayable(error)) throw error;
      await this.#fail('outputsInvalid', 'execution_error', invalidOutputs(fault));
    }
  }

  async #failWith(error: unknown): Promise<void> {
    // Told to stop because the session goes on elsewhere, or is over: that is no failure.
    if (this.#leaving || this.#writer.isLost || this.safety.isViolated || isTerminal(this.state)) return;
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
    await this.#fail('expired', 'timeout', tookTooLong(this.isResumable));
  }

  async #becomeIdle(): Promise<void> {
    const { onIdle, idleGraceMs } = this.#host.settings;
    if (this.#waitingForRoom > 0 || this.record.pausedBy === 'caller') return this.#touch();
    if (onIdle === 'suspend' && this.state === 'RUNNING') {
      this.#timers.idleIn(idleGraceMs);
      return this.rest.suspend();
    }
    await this.#fail('idle', 'idle_timeout', SAID_NOTHING);
  }

  async #fail(trigger: Trigger, reason: string, payload: TaskFailedPayload, step: Partial<Step> = {}): Promise<void> {
    const execution_summary = await this.#ledger.summary(this.record);
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
    const { abortTimeoutMs = this.#host.settings.abortTimeoutMs } = this.record;
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
    await this.#cleanups.run(() => this.capability?.cleanup?.(this.task, this.#run({ afterwards: true })));
  }

  async #recover(takenFrom: { owner: string; epoch: number }): Promise<'start'> {
    // Past its deadline it stays PAUSED: the timer fires at once and ends it. So it does when the caller wanted a rest.
    const isWanted = this.record.pausedBy !== undefined;
    const rests = this.#isLate || isWanted;
    const sayings = [stateChanged('RUNNING', 'PAUSED', 'callee_restarted')];
    if (!rests) sayings.push(stateChanged('PAUSED', 'RUNNING', 'recovered_from_checkpoint'));
    const audit = notes.accessAgainNotes(this.record, this.task);
    const record = this.#writer.in(rests ? 'PAUSED' : 'RUNNING');
    const pausedBy = isWanted ? 'caller' : undefined;
    await this.#writer.commit({ sayings, record: { ...record, pausedBy }, takenFrom, audit });
    this.#host.logAccess(this.record);
    this.rest.isRecovering = rests;
    return 'start';
  }

  /** Makes the moves a trigger calls for. Answers whether there were any. */
  async #move(trigger: Trigger, reason: string, { writes = [], ...step }: MoveOptions = {}): Promise<boolean> {
    this.#refuseLeaving();
    const moves = movesFor(this.state, trigger);
    if (moves.length === 0) return false;
    await this.#follow(moves, reason, { ...step, writes: () => writes });
    return true;
  }

  async #follow(
    moves: readonly Move[],
    reason: string,
    { before = [], result, pausedBy, ...step }: Omit<MoveOptions, 'writes' | 'audit'> & Omit<Partial<Step>, 'sayings'>,
  ): Promise<void> {
    const { state, sayings } = journey(this.state, moves, reason, result);
    const record = { ...this.#writer.in(state), ...(pausedBy && { pausedBy }) };
    const isOver = isTerminal(state);
    await this.#writer.commit({
      ...step,
      sayings: [...before, ...sayings],
      record,
      writes: (built) => [...(step.writes?.(built) ?? []), ...(isOver ? freeSlot(record, this.task.capability) : [])],
      audit: [...(step.audit ?? []), ...(isOver ? [notes.endNote(record, reason)] : [])],
    });
    if (isOver) this.#over(reason);
  }

  #over(reason: string): void {
    this.#timers.clear();
    this.rest.end();
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
    work.catch((error: unknown) => this.#trouble(error));
  }

  #trouble(error: unknown): void {
    if (!this.#writer.isLost) this.#log('error', error, 'A session could not do what was due');
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
