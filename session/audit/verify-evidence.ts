import { isHcpError } from '../../shared/errors.ts';
import { sha256 } from '../../shared/sha256.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { EVIDENCE_FORMAT, SEAL_TYP, sealLine } from './evidence.ts';
import { contentFindings, type EvidenceContent, type Fields, fieldsOf } from './evidence-content.ts';

/** What a file of evidence says, and whether it can be believed. */
export interface EvidenceReport {
  /** Empty: genuine and complete. One sentence each. */
  readonly findings: readonly string[];
  readonly sessionId: string | undefined;
  readonly summary: {
    readonly calleeId: string | undefined;
    readonly exportedAt: string | undefined;
    readonly state: string | undefined;
    readonly logEntries: number;
    readonly auditRecords: number;
  };
}

/**
 * Checks a file of evidence by itself, without store or callee: any byte that is not as it was sealed, and whatever the
 * callee itself left out or has not kept in order. The public keys of the callee are enough. Give the bytes of a file
 * rather than its text: a text has already lost what was not UTF-8.
 */
export async function verifyEvidence(
  file: string | Uint8Array,
  { keys }: { readonly keys: Pick<KeyRing, 'verify'> },
): Promise<EvidenceReport> {
  const text = decode(file);
  const lines = text.split('\n');
  const seal = lines.at(-2) ?? '';
  // All but a whole last line: behind anything else than a line feed, this is not what was sealed.
  const sealed = text.slice(0, Math.max(0, text.length - seal.length - 1));
  const { content, faults } = readLines(lines.slice(0, -2));
  const findings = [...(await sealFindings(seal, sealed, content, keys)), ...faults, ...contentFindings(content)];
  const { head, log, audit } = content;
  const { callee_id, session_id, exported_at, session } = head;
  const summary = {
    ...{ calleeId: textOf(callee_id), exportedAt: textOf(exported_at), state: textOf(fieldsOf(session).state) },
    ...{ logEntries: log.length, auditRecords: audit.length },
  };
  return { findings, sessionId: textOf(session_id), summary };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Empty, which no seal fits, for what is no text. */
function decode(file: string | Uint8Array): string {
  if (typeof file === 'string') return file.isWellFormed() ? file : '';
  try {
    return utf8.decode(file);
  } catch {
    return '';
  }
}

async function sealFindings(
  line: string,
  sealed: string,
  { head, log, audit }: EvidenceContent,
  keys: Pick<KeyRing, 'verify'>,
): Promise<string[]> {
  const { seal } = fieldsOf(parse(line));
  // The seal does not cover itself: written in any other way it would still hold, so there is only one way.
  if (typeof seal !== 'string' || sealLine(seal) !== `${line}\n` || !seal.split('.').every(isCanonical)) {
    return ['The last line is not a seal'];
  }
  let claims: Fields;
  try {
    claims = await keys.verify(seal, SEAL_TYP);
  } catch (error) {
    if (!isHcpError(error, 'token_invalid')) throw error;
    return [`The seal is not genuine: ${error.message}`];
  }
  if (claims.sha256 !== sha256(sealed)) return ['The file is not what was sealed'];
  const told = { format: head.format, callee_id: head.callee_id, session_id: head.session_id };
  const counted: Fields = { ...told, log: log.length, audit: audit.length };
  return Object.keys(counted)
    .filter((name) => claims[name] !== counted[name])
    .map((name) => `The seal says another ${name} than the file`);
}

/** Base64 leaves bits unused at the end: two spellings of one signature must not both pass. */
function isCanonical(segment: string): boolean {
  return Buffer.from(segment, 'base64url').toString('base64url') === segment;
}

/** Sorts the lines by what they are; what is none of it, or out of place, is a fault. */
function readLines(lines: readonly string[]): { readonly content: EvidenceContent; readonly faults: string[] } {
  const faults: string[] = [];
  const log: Fields[] = [];
  const audit: Fields[] = [];
  for (const [index, line] of lines.slice(1).entries()) {
    const fields = fieldsOf(parse(line));
    const kind = 'log' in fields ? 'log' : 'audit' in fields ? 'audit' : undefined;
    if (kind === undefined || (kind === 'log' && audit.length > 0)) {
      faults.push(`Line ${index + 2} does not belong there`);
    }
    if (kind === 'log') log.push(fieldsOf(fields.log));
    if (kind === 'audit') audit.push(fieldsOf(fields.audit));
  }
  const head = fieldsOf(parse(lines[0] ?? ''));
  if (head.format !== EVIDENCE_FORMAT) faults.push(`Line 1 does not say that this is ${EVIDENCE_FORMAT}`);
  return { content: { head, log, audit }, faults };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
