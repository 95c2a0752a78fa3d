import type { SafetyEnvelope } from '../schemas/types.ts';
import { procedureFor } from '../session/envelope.ts';
import type { Violation } from '../session/record.ts';
import { type Clock, delay } from '../shared/clock.ts';
import type { Procedure, Run } from './run.ts';

/** What became of an emergency procedure. */
export interface EmergencyOutcome {
  readonly procedure: string;
  readonly result: 'done' | 'failed' | 'timed out' | 'missing';
  readonly error?: unknown;
}

/** Runs the procedure an envelope names for this violation, for so long at most. `undefined`: it names none. */
export async function runEmergency(
  envelope: SafetyEnvelope,
  procedures: Readonly<Record<string, Procedure>>,
  { violation, run, clock, timeoutMs }: { violation: Violation; run: Run; clock: Clock; timeoutMs: number },
): Promise<EmergencyOutcome | undefined> {
  const name = procedureFor(envelope, violation);
  if (name === undefined) return undefined;
  const procedure = Object.hasOwn(procedures, name) ? procedures[name] : undefined;
  // A process that does not offer the capability any more cannot run it.
  if (procedure === undefined) return { procedure: name, result: 'missing' };
  const done = new AbortController();
  try {
    const work = (async () => procedure(violation, run))().then(() => 'done' as const);
    const tooLong = delay(clock, timeoutMs, done.signal).then(() => 'timed out' as const);
    return { procedure: name, result: await Promise.race([work, tooLong]) };
  } catch (error) {
    return { procedure: name, result: 'failed', error };
  } finally {
    done.abort();
  }
}
