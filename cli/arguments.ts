import { parseDuration } from '../shared/durations.ts';
import { isUuidV4 } from '../shared/ids.ts';
import type { Call, Values } from './command.ts';
import { UsageError } from './usage-error.ts';

export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

/** Of an option that can be given several times. */
export function textsOf(values: Values, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? value : [];
}

/** An ISO 8601 duration as it was given. Throws `UsageError`. */
export function durationOf(values: Values, name: string): string | undefined {
  const value = textOf(values, name);
  if (value !== undefined && parseDuration(value) === undefined) {
    throw new UsageError(`--${name} must be an ISO 8601 duration above zero, as PT5M`);
  }
  return value;
}

/** A number from 1 on. Throws `UsageError`. */
export function countOf(values: Values, name: string): number | undefined {
  const value = textOf(values, name);
  if (value === undefined) return undefined;
  const count = Number(value);
  if (!Number.isSafeInteger(count) || count < 1) throw new UsageError(`--${name} must be a number from 1 on`);
  return count;
}

/** The session a command is about: its first argument. Throws `UsageError`. */
export function sessionOf({ positionals: [sessionId] }: Pick<Call, 'positionals'>): string {
  if (isUuidV4(sessionId)) return sessionId.toLowerCase();
  throw new UsageError('A session is named by its id, a UUID, as hcp submit prints it');
}
