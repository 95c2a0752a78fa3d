import { isTerminal, type SessionState } from '../lifecycle.ts';
import { inputsHash } from './inputs-hash.ts';
import { auditHash } from './record.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** The lines of a file of evidence, parsed but not believed. */
export interface EvidenceContent {
  readonly head: Fields;
  readonly log: readonly Fields[];
  readonly audit: readonly Fields[];
}

/** What is wrong with what a file says, whoever sealed it: a callee's store may have been changed before the export. */
export function contentFindings({ head, log, audit }: EvidenceContent): string[] {
  const session = fieldsOf(head.session);
  return [
    ...sessionFindings(head, session),
    ...logFindings(log, session),
    ...endFindings(log, session),
    ...audit.flatMap((line) => recordFindings(line, session)),
    ...chainFindings(audit),
    ...decisionFindings(audit, session),
  ];
}

/** Empty for what is no object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function sessionFindings(head: Fields, session: Fields): string[] {
  return ['callee_id', 'session_id']
    .filter((name) => head[name] !== session[name])
    .map((name) => `The session has another ${name} than the file`);
}

function logFindings(log: readonly Fields[], session: Fields): string[] {
  const findings = log.flatMap((entry, index) => {
    const position = index + 1;
    if (entry.position !== position) return [`Where log entry ${position} belongs stands entry ${entry.position}`];
    const differs = 'message' in entry && messageFault(entry, session);
    return differs ? [`Log entry ${position} has another ${differs} than its message`] : [];
  });
  const sequences = log.flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence]));
  const wrong = sequences.findIndex((sequence, index) => sequence !== index + 1);
  return wrong < 0 ? findings : [...findings, `Where event ${wrong + 1} belongs stands event ${sequences[wrong]}`];
}

/** In what an entry differs from its message. */
function messageFault(entry: Fields, session: Fields): string | undefined {
  const message = fieldsOf(entry.message);
  const event = message.type === 'event' ? fieldsOf(message.payload) : {};
  const { event_type: kind = message.type, sequence } = event;
  const told: Fields = { message_id: message.message_id, kind, sequence };
  // A rejection tells of no session (D-01).
  if ((message.session_id ?? session.session_id) !== session.session_id) return 'session_id';
  return Object.keys(told).find((name) => entry[name] !== told[name]);
}

/** A session that is over has said so, as the last thing it said. */
function endFindings(log: readonly Fields[], { state }: Fields): string[] {
  // Any other text is simply not terminal.
  if (!isTerminal(state as SessionState)) return [];
  const last = log.findLast((entry) => 'message' in entry) ?? {};
  const { final_state } = fieldsOf(fieldsOf(fieldsOf(last.message).payload).data);
  const isClosed = last.kind === 'session_closed' && final_state === state;
  if (isClosed || (state === 'REJECTED' && last.kind === 'task_rejected')) return [];
  return [`The session is ${state}, but its log does not end with that`];
}

function recordFindings({ previous, hash, record }: Fields, session: Fields): string[] {
  const fields = fieldsOf(record);
  const name = `Record ${fields.position} of chain ${fields.chain}`;
  const { inputs_sha256: inputs } = fieldsOf(fields.details);
  return [
    ...(auditHash(String(previous), JSON.stringify(record)) === hash ? [] : [`${name} does not fit its hash`]),
    ...['callee_id', 'session_id']
      .filter((column) => fields[column] !== session[column])
      .map((column) => `${name} has another ${column} than the session`),
    ...(inputs === undefined || inputs === requestedInputs(session)
      ? []
      : [`${name} is about other inputs than those of the request`]),
  ];
}

function requestedInputs({ request }: Fields): string | undefined {
  const { inputs } = fieldsOf(fieldsOf(request).payload);
  return inputs === undefined ? undefined : inputsHash({ inputs });
}

/** Records of one chain each stand once, and where two are neighbours the second seals the first. */
function chainFindings(audit: readonly Fields[]): string[] {
  const byPlace = new Map<string, Fields>();
  const findings: string[] = [];
  for (const line of audit) {
    const { chain, position } = fieldsOf(line.record);
    if (byPlace.has(`${chain} ${position}`)) findings.push(`Record ${position} of chain ${chain} stands there twice`);
    byPlace.set(`${chain} ${position}`, line);
  }
  for (const { previous, record } of audit) {
    const { chain, position } = fieldsOf(record);
    const before = byPlace.get(`${chain} ${Number(position) - 1}`);
    if (before !== undefined && before.hash !== previous) {
      findings.push(`Record ${position} of chain ${chain} does not follow the one before it`);
    }
  }
  return findings;
}

/** Nothing is accepted or rejected without going on record (HCP-312). */
function decisionFindings(audit: readonly Fields[], { state }: Fields): string[] {
  if (state === 'PENDING' || audit.some(({ record }) => fieldsOf(record).kind === 'decision')) return [];
  return ['There is no record of the decision about the task'];
}
