import type { Clock } from '../../shared/clock.ts';
import { HcpError } from '../../shared/errors.ts';
import { sha256 } from '../../shared/sha256.ts';
import type { Row, Store } from '../../shared/store/store.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { type LogEntry, readLog } from '../log.ts';
import { readAudit } from './read.ts';
import type { AuditRecord } from './record.ts';

export interface EvidenceSource {
  readonly store: Store;
  readonly calleeId: string;
  readonly sessionId: string;
  /** Signs the seal. */
  readonly keys: Pick<KeyRing, 'sign'>;
  readonly clock: Clock;
}

export const EVIDENCE_FORMAT = 'hcp-evidence/1';
/** Keeps a seal from being used as another token, and the other way round. */
export const SEAL_TYP = 'hcp-evidence+jws';

const REDACTED = 'Session tokens are secret: in place of each stands the sha256 of it';

/** The columns of a session that hold JSON. */
const JSON_COLUMNS = new Set(['request', 'trace', 'safety_envelope', 'extensions', 'violation']);

/**
 * Everything the callee has about one session, as a file that proves itself: JSON Lines with the session, each entry of
 * its log and each record of its audit, closed by a seal, the callee's signature over all bytes before it. Holds the
 * inputs and outputs of the task, but no token. Rejects with `session_unknown`.
 */
export async function exportEvidence({ store, calleeId, sessionId, keys, clock }: EvidenceSource): Promise<string> {
  // The session before its log: an end that it tells of is in the log then.
  const session = await store.get('sessions', [sessionId]);
  if (session === undefined || session.callee_id !== calleeId) {
    throw new HcpError('session_unknown', `Callee ${calleeId} has no session ${sessionId}`);
  }
  const log: object[] = [];
  for await (const entry of readLog(store, sessionId)) log.push({ log: logFields(entry) });
  const audit: object[] = [];
  for await (const record of readAudit(store, calleeId, sessionId)) audit.push({ audit: auditFields(record) });
  const about = { format: EVIDENCE_FORMAT, callee_id: calleeId, session_id: sessionId };
  const head = { ...about, exported_at: new Date(clock.now()).toISOString(), redacted: REDACTED };
  const text = [{ ...head, session: sessionFields(session) }, ...log, ...audit]
    .map((line) => `${redacted(line, session.session_token)}\n`)
    .join('');
  const claims = { ...about, sha256: sha256(text), log: log.length, audit: audit.length };
  return `${text}${sealLine(await keys.sign(claims, SEAL_TYP))}`;
}

/** The one way to write the last line. */
export function sealLine(seal: string): string {
  return `${JSON.stringify({ seal })}\n`;
}

function sessionFields(row: Row): object {
  const fields = Object.entries(row).map(([column, value]) => [
    column,
    JSON_COLUMNS.has(column) && value !== null ? readable(String(value)) : value,
  ]);
  return { ...Object.fromEntries(fields), request_sha256: sha256(String(row.request)) };
}

function logFields({ position, sequence, kind, messageId, at, body }: LogEntry): object {
  return {
    ...{ position, sequence, kind, message_id: messageId, at },
    // Of the bytes that were published, token and all: whoever received them can compare.
    ...(body && { sha256: sha256(body), message: readable(body.toString()) }),
  };
}

function auditFields({ previous, hash, body }: AuditRecord): object {
  return { previous, hash, record: readable(body) };
}

/** As JSON in JSON rather than a text full of escapes. Something damaged is shown as it is. */
function readable(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A value as one line without tokens: neither where they belong nor where somebody let one slip. */
function redacted(value: object, token: unknown): string {
  return JSON.stringify(value, (key, item) => {
    if (typeof item !== 'string') return item;
    if (key === 'session_token') return digestOf(item);
    return typeof token === 'string' && token !== '' ? item.replaceAll(token, digestOf(token)) : item;
  });
}

function digestOf(token: string): string {
  return `sha256:${sha256(token)}`;
}
