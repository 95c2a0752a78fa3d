import type { TaskSubmitPayload } from '../schemas/types.ts';
import type { KeyRing } from '../session/keys/key-ring.ts';
import type { SessionRecord } from '../session/record.ts';
import { checkToken, issueToken } from '../session/token.ts';
import type { Terms } from './gate/gate.ts';
import type { CalleeSettings } from './options.ts';

/** The proof that the gate let a task pass, and how long it holds. */
export interface Grant {
  readonly token: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** Grants a session its terms (HCP-307): no longer than it may run. */
export async function grant(
  keys: KeyRing,
  { sessionId, calleeId, callerId }: SessionRecord,
  terms: Terms,
  { clock, abortTimeoutMs, tokenLifetimeMs }: CalleeSettings,
): Promise<Grant> {
  const { name: capability, version } = terms.capability.declaration;
  const { riskLevel, dataClassification, safetyEnvelope, maxDurationMs } = terms;
  const issuedAt = clock.now();
  const expiresAt = issuedAt + Math.min(maxDurationMs, tokenLifetimeMs);
  const token = await issueToken(keys, {
    ...{ calleeId, callerId, sessionId, capability, version, riskLevel, dataClassification },
    ...{ maxDurationMs, abortTimeoutMs, safetyEnvelope, issuedAt, expiresAt },
  });
  return { token, issuedAt, expiresAt };
}

/** Rejects with `token_invalid` unless a session's token is genuine, in force, and grants what is on record (HCP-308). */
export async function checkGrant(
  keys: KeyRing,
  record: SessionRecord,
  { capability }: TaskSubmitPayload,
  now: number,
): Promise<void> {
  const { token = '', version = '', riskLevel = 'R1', dataClassification = 'T1' } = record;
  const { maxDurationMs = 0, abortTimeoutMs = 0 } = record;
  const terms = { version, riskLevel, dataClassification, maxDurationMs, abortTimeoutMs, capability, token };
  await checkToken(keys, token, { ...record, ...terms }, now);
}
