import type { RiskLevel } from '../schemas/types.ts';
import { judgeAction } from '../session/envelope.ts';
import type { SessionRecord, Violation } from '../session/record.ts';
import { HcpError, isHcpError } from '../shared/errors.ts';
import { riskLevel } from './gate/levels.ts';
import type { Guard } from './run.ts';

export interface GuardParts {
  readonly record: () => SessionRecord;
  readonly signal: AbortSignal;
  /** Resolves when the caller does not keep the session paused. */
  readonly unpaused: () => Promise<void>;
  /** Rejects with `token_invalid` unless the session's token is in force, with `session_closed` when it has expired. */
  readonly checkToken: () => Promise<void>;
  readonly warn: (violation: Violation) => Promise<void>;
  /** Ends the session. Resolves when the emergency procedure has run. */
  readonly violate: (violation: Violation) => Promise<void>;
}

/** Guards the actions of an executor (HCP-308, HCP-310). */
export function guardOf(parts: GuardParts): Guard {
  return {
    async act(action, parameters = {}, { risk = 'R1' } = {}) {
      refuseUnclear(action, parameters, risk);
      await untilRunning(parts, action);
      const fault = await tokenFault(parts, action);
      // The session may have been stopped, or paused, meanwhile.
      await untilRunning(parts, action);
      const { hard, soft } = judgeAction(parts.record().safetyEnvelope, action, parameters);
      const broken = fault ?? riskFault(parts.record(), action, risk) ?? hard;
      if (broken !== undefined) {
        await parts.violate(broken);
        throw refused(broken);
      }
      for (const each of soft) await parts.warn(each);
      if (soft.length > 0) await untilRunning(parts, action);
    },
  };
}

export interface CleanupGuardParts extends Pick<GuardParts, 'record' | 'warn'> {
  /** Tells of an action that is not done, without waiting for that: what else is to be cleaned up comes first. */
  readonly refuse: (violation: Violation) => void;
}

/**
 * Guards cleaning up and emergency procedures: these must be able to act after an abort, a time-out or a violation, but
 * within the envelope all the same.
 */
export function cleanupGuardOf({ record, warn, refuse }: CleanupGuardParts): Guard {
  return {
    async act(action, parameters = {}, { risk = 'R1' } = {}) {
      refuseUnclear(action, parameters, risk);
      const { hard, soft } = judgeAction(record().safetyEnvelope, action, parameters);
      if (hard !== undefined) {
        refuse(hard);
        throw refused(hard);
      }
      for (const each of soft) await warn(each);
    },
  };
}

const LONGEST_NAME = 200;

/** What could not be judged, or not be told of, is a mistake in the call. */
function refuseUnclear(action: unknown, parameters: unknown, risk: unknown): void {
  if (typeof action !== 'string' || action === '' || action.length > LONGEST_NAME) {
    throw new TypeError(`An action has a name of 1 to ${LONGEST_NAME} characters`);
  }
  if (typeof parameters !== 'object' || parameters === null) {
    throw new TypeError('The parameters of an action are an object');
  }
  riskLevel(risk, 'risk');
}

/** Waits for the end of a pause by the caller. Rejects when the work must not go on. */
async function untilRunning({ unpaused, signal, record }: GuardParts, action: string): Promise<void> {
  await unpaused();
  signal.throwIfAborted();
  const { state } = record();
  if (state === 'RUNNING') return;
  throw new HcpError('session_illegal_transition', `${action} cannot be done while the session is ${state}`);
}

async function tokenFault({ checkToken }: GuardParts, action: string): Promise<Violation | undefined> {
  try {
    await checkToken();
    return undefined;
  } catch (error) {
    if (!isHcpError(error, 'token_invalid')) throw error;
    return { action, condition: 'token', message: 'The session has no token in force' };
  }
}

function riskFault(
  { riskLevel: approved = 'R1' }: SessionRecord,
  action: string,
  risk: RiskLevel,
): Violation | undefined {
  if (risk <= approved) return undefined;
  return { action, condition: 'risk', message: `${action} is rated ${risk}, approved is ${approved}` };
}

function refused({ message }: Violation): HcpError<'safety_violation'> {
  return new HcpError('safety_violation', `Not to be done: ${message}`);
}
