import { type Approval, approvalOf } from '../callee/approvals/approval.ts';
import type { EventMessage } from '../schemas/types.ts';
import { readAudit } from '../session/audit/index.ts';
import type { AuditRecord } from '../session/audit/record.ts';
import { type Checkpoint, readCheckpoints } from '../session/checkpoints.ts';
import { type LogEntry, readLog } from '../session/log.ts';
import type { SessionRecord } from '../session/record.ts';
import { silentLogger } from '../shared/logger.ts';
import type { Store } from '../shared/store/store.ts';
import type { Io } from './command.ts';
import { paintedMessage, table, tame } from './output.ts';
import { moment, span } from './times.ts';

/** How long a session was in a state. */
interface Stay {
  readonly state: string;
  readonly from: number;
  readonly ms: number;
}

/** Everything a callee's store has about one session. */
export interface Story {
  readonly now: number;
  readonly record: SessionRecord;
  readonly log: readonly LogEntry[];
  readonly stays: readonly Stay[];
  readonly checkpoints: readonly Checkpoint[];
  readonly approval: Approval | undefined;
  readonly audit: readonly AuditRecord[];
}

export async function readStory(store: Store, record: SessionRecord): Promise<Story> {
  const { sessionId, calleeId } = record;
  const log = await Array.fromAsync(readLog(store, sessionId));
  const audit = await Array.fromAsync(readAudit(store, calleeId, sessionId));
  const approval = await store.get('approvals', [sessionId]);
  const now = await store.now();
  return {
    now,
    record,
    log,
    stays: staysOf(record, log, now),
    checkpoints: await readCheckpoints(store, sessionId, silentLogger),
    approval: approval && approvalOf(approval),
    audit,
  };
}

/** From when to when it was in which state; a state it ended in takes no time. */
function staysOf({ createdAt, closedAt, state }: SessionRecord, log: readonly LogEntry[], now: number): Stay[] {
  const moves = [{ state: 'PENDING', from: createdAt }];
  for (const { kind, at, body } of log) {
    if (kind === 'state_changed' && body) moves.push({ state: String(dataOf(body).to_state), from: at });
  }
  // A rejection is told without an event.
  if (closedAt !== undefined && moves.at(-1)?.state !== state) moves.push({ state, from: closedAt });
  return moves.map(({ state, from }, index) => {
    const until = moves[index + 1]?.from ?? closedAt ?? now;
    return { state, from, ms: Math.max(0, until - from) };
  });
}

function dataOf(body: Buffer): Readonly<Record<string, unknown>> {
  return (JSON.parse(body.toString()) as EventMessage).payload.data; // ours, checked before it was stored
}

export function storyJson({ log, stays, checkpoints, approval, audit }: Story): object {
  return {
    states: stays.map(({ state, from, ms }) => ({ state, from: new Date(from).toISOString(), duration_ms: ms })),
    timeline: log.map(({ position, sequence, kind, at, body }) => ({
      ...{ position, sequence: sequence ?? null, kind, at: new Date(at).toISOString() },
      message: body === undefined ? null : JSON.parse(body.toString()),
    })),
    checkpoints: checkpoints.map(checkpointJson),
    approval: approval === undefined ? null : approvalJson(approval),
    audit: audit.map(({ body }) => JSON.parse(body)),
  };
}

export function checkpointJson({
  checkpointId,
  sequence,
  description,
  resumable,
  createdAt,
  data,
}: Checkpoint): object {
  return { checkpoint_id: checkpointId, sequence, description, resumable, created_at: createdAt, data };
}

export function approvalJson(approval: Approval): object {
  const { status, riskLevel, requestedAt, expiresAt, needed, votes, subject } = approval;
  return {
    ...{ status, risk_level: riskLevel, needed, votes, subject },
    requested_at: new Date(requestedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
  };
}

export function storyLines(story: Story, io: Io): string[] {
  return [
    ...section('states', stayLines(story.stays)),
    ...section(
      'timeline (UTC)',
      story.log.map((entry) => entryLine(entry, io)),
    ),
    ...section('checkpoints', checkpointLines(story.checkpoints)),
    ...section('approval', story.approval === undefined ? [] : approvalLines(story.approval)),
    ...section('audit', table(story.audit.map(({ at, kind, body }) => [moment(at), kind, auditGist(body)]))),
  ];
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)];
}

const BAR = 30;

function stayLines(stays: readonly Stay[]): string[] {
  const whole = Math.max(1, ...stays.map(({ ms }) => ms));
  return table(
    stays.map(({ state, ms }, index) => {
      const isEnd = ms === 0 && index === stays.length - 1;
      return [state, isEnd ? '' : `${'█'.repeat(Math.max(1, Math.round((ms / whole) * BAR)))} ${span(ms)}`];
    }),
  );
}

function entryLine({ at, body }: LogEntry, io: Io): string {
  if (body === undefined) return `${new Date(at).toISOString().slice(11, 19)}       another instance went on with it`;
  return paintedMessage(io, JSON.parse(body.toString())); // ours, checked before it was stored
}

/** One line each, the newest first. */
export function checkpointLines(checkpoints: readonly Checkpoint[]): string[] {
  return table(
    checkpoints.map(({ checkpointId, sequence, description, resumable, createdAt }) => [
      ...[checkpointId, String(sequence), moment(Date.parse(createdAt))],
      ...[resumable ? 'resumable' : 'not resumable', tame(description)],
    ]),
  );
}

function approvalLines({ status, riskLevel, requestedAt, expiresAt, needed, votes }: Approval): string[] {
  const until = status === 'pending' ? `, until ${moment(expiresAt)}` : '';
  return [
    `${moment(requestedAt)}  asked: risk ${riskLevel}, ${needed} must agree${until}; now ${status}`,
    ...votes.map(({ at, approver, verdict, comment }) => {
      const said = verdict === 'approve' ? 'approved' : 'denied';
      return `${moment(Date.parse(at))}  ${tame(approver)} ${said}${comment === undefined ? '' : `: ${tame(comment)}`}`;
    }),
  ];
}

function auditGist(body: string): string {
  return tame((JSON.parse(body) as { readonly details: unknown }).details);
}
