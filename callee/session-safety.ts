import type { TaskFailedPayload, TaskSubmitPayload } from '../schemas/types.ts';
import { isTerminal } from '../session/lifecycle.ts';
import type { SessionRecord, Violation } from '../session/record.ts';
import { HcpError, isHcpError } from '../shared/errors.ts';
import { emergencyNote, violationNote } from './audit-notes.ts';
import { runEmergency } from './emergency.ts';
import { cleanupGuardOf, guardOf } from './guard.ts';
import type { Host } from './host.ts';
import type { Guard, Procedure, Run } from './run.ts';
import { violated } from './sayings.ts';
import { checkGrant } from './session-token.ts';
import { type Saying, type Step, takenOver } from './session-writer.ts';

export interface SafetyParts {
  readonly host: Host;
  readonly task: TaskSubmitPayload;
  readonly record: () => SessionRecord;
  readonly stop: AbortController;
  /** The emergency procedures of the capability, as far as this process offers it. */
  readonly procedures: () => Readonly<Record<string, Procedure>>;
  /** What a procedure is given. */
  readonly run: () => Run;
  /** Resolves when the caller does not keep the session paused. */
  readonly unpaused: () => Promise<void>;
  /** Another instance has the session. */
  readonly onTakenOver: () => void;
  /** The work is over: no deadline ends it any more. */
  readonly onViolated: () => void;
  readonly commit: (step: Step) => Promise<void>;
  readonly warn: (violation: Violation) => Promise<void>;
  readonly expire: () => Promise<void>;
  readonly fail: (payload: TaskFailedPayload) => Promise<void>;
  readonly log: (error: unknown, message: string) => void;
}

/** Keeps the work of one session within what was approved: its token, its envelope, and what to do when one is broken. */
export class SessionSafety {
  readonly #parts: SafetyParts;
  /** For the work. */
  readonly guard: Guard;
  /** For cleaning up and for emergency procedures. */
  readonly cleanupGuard: Guard;
  #violated: Promise<void> | undefined;

  constructor(parts: SafetyParts) {
    this.#parts = parts;
    const { record, warn, stop, unpaused, log } = parts;
    this.guard = guardOf({
      ...{ record, warn, unpaused, signal: stop.signal },
      checkToken: () => this.#checkToken(),
      violate: (violation) => this.violate(violation),
    });
    this.cleanupGuard = cleanupGuardOf({
      record,
      warn: (violation) => warn(violation).catch((error: unknown) => log(error, 'A warning could not be told')),
      refuse: (violation) => {
        this.#tell(violation).catch((error: unknown) => log(error, 'A broken limit could not be told'));
      },
    });
  }

  /** Whether the session fails for a broken limit, whatever else becomes of its work. */
  get isViolated(): boolean {
    return this.#violated !== undefined;
  }

  /** The token must be in force for the work to start or to go on (HCP-308). */
  async admit(action: 'start' | 'resume'): Promise<void> {
    try {
      await this.#checkToken();
    } catch (error) {
      if (!isHcpError(error, 'token_invalid')) throw error;
      await this.violate({ action, condition: 'token', message: 'The session has no token in force' });
      throw error;
    }
  }

  /** A hard limit: from now on nothing is done but bringing things into a safe state. Once, however often it is called. */
  violate(violation: Violation): Promise<void> {
    this.#violated ??= this.#dealWith(violation);
    return this.#violated;
  }

  /** Runs the procedure the envelope names, if it does. */
  async emergency(violation: Violation): Promise<void> {
    const { host, record, run, procedures, log } = this.#parts;
    const { safetyEnvelope, abortTimeoutMs: timeoutMs = host.settings.abortTimeoutMs } = record();
    const { clock } = host;
    const outcome = await runEmergency(safetyEnvelope, procedures(), { violation, run: run(), clock, timeoutMs });
    if (outcome === undefined) return;
    const { procedure, result, error } = outcome;
    if (result !== 'done') log(error, `The emergency procedure ${procedure}: ${result}`);
    await host.note(emergencyNote(record(), procedure, result));
  }

  async #dealWith(violation: Violation): Promise<void> {
    const { stop, commit, record, fail, onViolated } = this.#parts;
    const { state, violation: known } = record();
    stop.abort(new HcpError('safety_violation', `The session broke a limit: ${violation.message}`));
    onViolated();
    const isAborting = state === 'ABORTING';
    // Both at once: a store that is away must not delay the emergency.
    const stored = known
      ? undefined
      : commit({
          sayings: isAborting ? [stopped(violation)] : [],
          record: { ...record(), violation },
          audit: [violationNote(record(), violation)],
        });
    const [kept] = await Promise.allSettled([stored, this.emergency(violation)]);
    if (kept.status === 'rejected') throw kept.reason;
    if (record().state !== 'ABORTING') await fail(violated(violation));
    // Aborted meanwhile: it does not fail, so this is how its caller hears of it.
    else if (!isAborting) await commit({ sayings: [stopped(violation)] });
  }

  /** While cleaning up: on record and, as long as the session lasts, told to the caller; nothing else changes. */
  #tell(violation: Violation): Promise<void> {
    const { host, commit, record } = this.#parts;
    const note = violationNote(record(), violation);
    if (isTerminal(record().state)) return host.note(note);
    return commit({ sayings: [stopped(violation)], audit: [note] });
  }

  /** Rejects unless the token is in force. Its expiry is a deadline: the session ends (D-17). */
  async #checkToken(): Promise<void> {
    const { host, record, task, expire } = this.#parts;
    try {
      await checkGrant(host.keys, record(), task, host.clock.now());
    } catch (error) {
      if (!isHcpError(error, 'token_invalid') || error.reason !== 'expired') throw error;
      await expire();
      throw new HcpError('session_closed', 'The session is over: its token has expired', { cause: error });
    }
    await this.#checkOwner();
  }

  /** Where equipment or life is at stake: a process that was frozen must not act on a session that others go on with. */
  async #checkOwner(): Promise<void> {
    const { host, record, onTakenOver } = this.#parts;
    const { sessionId, epoch, riskLevel = 'R1' } = record();
    if (riskLevel < 'R4') return;
    const row = await host.store.get('sessions', [sessionId]);
    if (row?.epoch === epoch) return;
    onTakenOver();
    throw takenOver();
  }
}

/** An action that was not done, and that does not end the session. */
function stopped({ message }: Violation): Saying {
  return { event: 'error', data: { code: 'safety_violation', message, recoverable: false } };
}
