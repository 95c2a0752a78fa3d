import { createHash, timingSafeEqual } from 'node:crypto';
import type { DataClassification, RiskLevel, SafetyEnvelope, SessionToken } from '../schemas/types.ts';
import { canonicalJson } from '../shared/canonical-json.ts';
import { formatDuration } from '../shared/durations.ts';
import { newUlid } from '../shared/ids.ts';
import { sha256 } from '../shared/sha256.ts';
import { tokenInvalid } from './keys/compact-token.ts';
import type { KeyRing } from './keys/key-ring.ts';

/** Keeps a session's token apart from whatever else the ring signs. */
const KIND = 'hcp-session+jwt';
/** Clocks are set back, and those of two instances differ: that alone must not end a session. */
const CLOCK_SKEW_MS = 60_000;

/** What the gate has approved for a session, as the callee keeps it. */
export interface TokenTerms {
  readonly calleeId: string;
  readonly callerId: string;
  readonly sessionId: string;
  /** Name of the capability. */
  readonly capability: string;
  /** Version of the capability. */
  readonly version: string;
  readonly riskLevel: RiskLevel;
  readonly dataClassification: DataClassification;
  readonly maxDurationMs: number;
  readonly abortTimeoutMs: number;
  readonly safetyEnvelope: SafetyEnvelope;
}

/** An approval to be put into a token. Times are milliseconds since 1970. */
export interface TokenGrant extends TokenTerms {
  readonly issuedAt: number;
  /** At most `maxDurationMs` after it was issued. */
  readonly expiresAt: number;
}

/** What a session on record says of its token. */
export interface ExpectedToken extends TokenTerms {
  /** The token that was issued for it. */
  readonly token: string;
}

/** What a token says; opaque to the caller. */
export interface SessionClaims {
  /** The callee. */
  readonly iss: string;
  /** The caller. */
  readonly sub: string;
  /** The session. */
  readonly sid: string;
  readonly jti: string;
  /** Seconds since 1970, with milliseconds as decimals. */
  readonly iat: number;
  readonly exp: number;
  /** `name@version` */
  readonly cap: string;
  readonly risk: RiskLevel;
  readonly data: DataClassification;
  readonly lim: { readonly max_duration: string; readonly abort_timeout: string };
  /** SHA-256 of the safety envelope's canonical JSON, in hex. */
  readonly env: string;
}

/** Signs what was approved for a session (HCP-307). Rejects with `TypeError` when it would outlive the max duration. */
export async function issueToken(ring: KeyRing, grant: TokenGrant): Promise<string> {
  const { issuedAt, expiresAt, maxDurationMs } = grant;
  if (!(expiresAt > issuedAt && expiresAt <= issuedAt + maxDurationMs)) {
    throw new TypeError('expiresAt must be later than issuedAt, by maxDurationMs at most');
  }
  const claims: SessionClaims = {
    ...partiesOf(grant),
    jti: newUlid(issuedAt),
    iat: issuedAt / 1000,
    exp: expiresAt / 1000,
    ...termsOf(grant),
  };
  return ring.sign({ ...claims }, KIND);
}

/**
 * The claims of the token a session was given, if it is that one, signed by us, and in force at `now` (HCP-308).
 * Rejects with `token_invalid`. Time is judged last: `expired` means genuine in all else, and good enough for an abort
 * (D-17).
 */
export async function checkToken(
  ring: KeyRing,
  token: string,
  expected: ExpectedToken,
  now: number,
): Promise<SessionClaims> {
  const { iss, sub, sid, jti, iat, exp, ...terms } = await ring.verify(token, KIND);
  const parties = partiesOf(expected);
  if (iss !== parties.iss) throw tokenInvalid('foreign', 'The token was issued by another callee');
  if (sub !== parties.sub || sid !== parties.sid) {
    throw tokenInvalid('replayed', 'The token was issued for another session');
  }
  // Also when it says less: then it is the record that somebody has widened.
  if (canonicalJson(terms) !== canonicalJson(termsOf(expected))) {
    throw tokenInvalid('widened', 'The token approves other terms than those on record');
  }
  if (!isSameToken(token, expected.token)) throw tokenInvalid('replayed', 'The token is not the one on record');
  if (typeof jti !== 'string' || typeof iat !== 'number' || typeof exp !== 'number') {
    throw tokenInvalid('malformed', 'The token lacks its id or its times');
  }
  const [issuedAt, expiresAt] = [milliseconds(iat), milliseconds(exp)];
  if (expiresAt > issuedAt + expected.maxDurationMs) {
    throw tokenInvalid('widened', 'The token outlives the max duration of its session');
  }
  if (issuedAt > now + CLOCK_SKEW_MS) throw tokenInvalid('early', 'The token is not valid yet');
  if (expiresAt <= now) throw tokenInvalid('expired', 'The token has expired');
  return { ...parties, jti, iat, exp, ...termsOf(expected) };
}

/** Compares in constant time: digests have equal lengths. */
export function isSameToken(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** What the callee keeps of an approval, in the words of its schema. */
export function describeToken(token: string, claims: SessionClaims): SessionToken {
  return {
    token,
    issued_at: new Date(milliseconds(claims.iat)).toISOString(),
    expires_at: new Date(milliseconds(claims.exp)).toISOString(),
    approved_risk_level: claims.risk,
    approved_data_classification: claims.data,
    constraints: { ...claims.lim },
  };
}

function partiesOf({ calleeId, callerId, sessionId }: TokenTerms): Pick<SessionClaims, 'iss' | 'sub' | 'sid'> {
  return { iss: calleeId, sub: callerId, sid: sessionId };
}

function termsOf(terms: TokenTerms): Pick<SessionClaims, 'cap' | 'risk' | 'data' | 'lim' | 'env'> {
  return {
    cap: `${terms.capability}@${terms.version}`,
    risk: terms.riskLevel,
    data: terms.dataClassification,
    lim: {
      max_duration: formatDuration(terms.maxDurationMs),
      abort_timeout: formatDuration(terms.abortTimeoutMs),
    },
    env: sha256(canonicalJson(terms.safetyEnvelope)),
  };
}

function milliseconds(seconds: number): number {
  return Math.round(seconds * 1000);
}
