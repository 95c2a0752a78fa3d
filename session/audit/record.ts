import { sha256 } from '../../shared/sha256.ts';
import type { Row } from '../../shared/store/store.ts';

/** What is put on record. Adding a word here is all a new kind needs. */
export type AuditKind =
  | 'decision'
  | 'abort'
  | 'command_refused'
  | 'approval'
  | 'violation'
  | 'emergency'
  | 'data_access'
  | 'ended'
  | 'revocation';

/** What somebody wants on record. The details are plain JSON and never hold a token. */
export interface AuditDraft {
  readonly kind: AuditKind;
  /** Missing where it is about no session. */
  readonly sessionId?: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The end of a chain: how many records it has, and the hash of the last one. */
export interface AuditHead {
  readonly chain: string;
  readonly length: number;
  readonly hash: string;
}

/** One record as it stands in its chain. */
export interface AuditRecord {
  readonly calleeId: string;
  readonly chain: string;
  readonly position: number;
  readonly sessionId: string | undefined;
  /** An {@link AuditKind}, or `opened` for the first of a chain. */
  readonly kind: string;
  readonly at: number;
  /** The exact text that is sealed: all of the above, and the details. */
  readonly body: string;
  /** The hash of the record before it. */
  readonly previous: string;
  readonly hash: string;
}

/** Stands where the hash of the record before the first one would be. */
export const NO_HASH = '0'.repeat(64);

export function auditHash(previous: string, body: string): string {
  return sha256(`${previous}\n${body}`);
}

/** The row of the record that comes behind `head`. */
export function auditRow(
  calleeId: string,
  { chain, length, hash: previous }: AuditHead,
  draft: Omit<AuditDraft, 'kind'> & { readonly kind: string; readonly at: number },
): Row & { readonly position: number; readonly hash: string } {
  const { kind, sessionId, at, details } = draft;
  const position = length + 1;
  const body = JSON.stringify({
    ...{ callee_id: calleeId, chain, position, at: new Date(at).toISOString(), kind },
    ...(sessionId !== undefined && { session_id: sessionId }),
    // By themselves: whatever they are called, they cannot pass for what the chain says.
    details,
  });
  const hash = auditHash(previous, body);
  return { callee_id: calleeId, chain, position, session_id: sessionId ?? '', kind, at, body, previous, hash };
}

export function auditRecordOf(row: Row): AuditRecord {
  return {
    calleeId: String(row.callee_id),
    chain: String(row.chain),
    position: Number(row.position),
    sessionId: String(row.session_id) || undefined,
    kind: String(row.kind),
    at: Number(row.at),
    body: String(row.body),
    previous: String(row.previous),
    hash: String(row.hash),
  };
}

/** What is wrong with a row taken by itself, as the rest of a sentence. */
export function rowFault(row: Row): string | undefined {
  const { body, previous, hash } = auditRecordOf(row);
  if (auditHash(previous, body) !== hash) return 'was changed: its hash does not fit its content';
  const told = columnsOf(body);
  const column = Object.keys(told).find((name) => row[name] !== told[name]);
  return column === undefined ? undefined : `was changed: its ${column} is not what its body says`;
}

/** The columns that repeat what the body says. */
function columnsOf(body: string): Readonly<Record<string, unknown>> {
  const { callee_id, chain, position, at, kind, session_id = '' } = parseBody(body);
  return { callee_id, chain, position, session_id, kind, at: Date.parse(String(at)) };
}

/** Empty for what is no JSON object. */
export function parseBody(body: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(body));
  } catch {
    return {};
  }
}
