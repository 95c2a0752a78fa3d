import type { DataClassification, RiskLevel, SafetyEnvelope } from '../schemas/types.ts';
import type { Row } from '../shared/store/store.ts';
import type { SessionState } from './lifecycle.ts';

/** An action that was not done because of a hard limit. */
export interface Violation {
  readonly action: string;
  /** The parameter or the action whose limit it was, or `token`, `risk`. */
  readonly condition: string;
  readonly message: string;
}

/** A session as it is stored: what was true after its last transition. */
export interface SessionRecord {
  readonly sessionId: string;
  readonly calleeId: string;
  readonly callerId: string;
  /** Of the `task_submit`. */
  readonly messageId: string;
  readonly owner: string;
  readonly epoch: number;
  readonly state: SessionState;
  /** The body of the `task_submit`. */
  readonly request: string;
  readonly userId: string | undefined;
  readonly appId: string | undefined;
  /** The trace it belongs to, as headers in JSON. */
  readonly trace: string;
  readonly token: string | undefined;
  readonly version: string | undefined;
  readonly riskLevel: RiskLevel | undefined;
  readonly dataClassification: DataClassification | undefined;
  readonly safetyEnvelope: SafetyEnvelope;
  readonly maxDurationMs: number | undefined;
  readonly abortTimeoutMs: number | undefined;
  /** Names of the extensions in force, as they were told; none before it is accepted. */
  readonly extensions: readonly string[];
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runningSince: number | undefined;
  readonly deadlineAt: number | undefined;
  readonly closedAt: number | undefined;
  /** Which of the places of its capability it takes, where these are limited. */
  readonly slot: number | undefined;
  /** `caller`: the caller keeps it paused. `caller_soon`: it shall be, from the next safe point on. */
  readonly pausedBy: 'caller' | 'caller_soon' | undefined;
  /** The hard limit it broke, told in a sentence. */
  readonly violation: Violation | undefined;
  readonly publishedThrough: number;
  readonly active: boolean;
}

/** What a record cannot do without. */
type Essentials = Pick<
  SessionRecord,
  'sessionId' | 'calleeId' | 'callerId' | 'messageId' | 'owner' | 'epoch' | 'request' | 'trace' | 'createdAt'
>;

/** A session nobody has judged yet. */
export function newRecord(fields: Essentials & Partial<SessionRecord>): SessionRecord {
  return {
    state: 'PENDING',
    userId: undefined,
    appId: undefined,
    token: undefined,
    version: undefined,
    riskLevel: undefined,
    dataClassification: undefined,
    safetyEnvelope: {},
    maxDurationMs: undefined,
    abortTimeoutMs: undefined,
    extensions: [],
    updatedAt: fields.createdAt,
    runningSince: undefined,
    deadlineAt: undefined,
    closedAt: undefined,
    slot: undefined,
    pausedBy: undefined,
    violation: undefined,
    publishedThrough: 0,
    active: true,
    ...fields,
  };
}

export function recordOf(row: Row): SessionRecord {
  const text = (name: string) => (row[name] === null || row[name] === undefined ? undefined : String(row[name]));
  const number = (name: string) => (row[name] === null || row[name] === undefined ? undefined : Number(row[name]));
  return {
    sessionId: String(row.session_id),
    calleeId: String(row.callee_id),
    callerId: String(row.caller_id),
    messageId: String(row.message_id),
    owner: String(row.owner),
    epoch: Number(row.epoch),
    // Written by rowOf alone.
    state: row.state as SessionState,
    request: String(row.request),
    userId: text('user_id'),
    appId: text('app_id'),
    trace: String(row.trace),
    token: text('session_token'),
    version: text('version'),
    riskLevel: text('risk_level') as RiskLevel | undefined,
    dataClassification: text('data_classification') as DataClassification | undefined,
    safetyEnvelope: JSON.parse(text('safety_envelope') ?? '{}'),
    maxDurationMs: number('max_duration_ms'),
    abortTimeoutMs: number('abort_timeout_ms'),
    extensions: JSON.parse(text('extensions') ?? '[]'),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    runningSince: number('running_since'),
    deadlineAt: number('deadline_at'),
    closedAt: number('closed_at'),
    slot: number('slot'),
    pausedBy: text('paused_by') as SessionRecord['pausedBy'],
    violation: row.violation === null || row.violation === undefined ? undefined : JSON.parse(String(row.violation)),
    publishedThrough: Number(row.published_through),
    active: row.active !== null,
  };
}

export function rowOf(record: SessionRecord): Row {
  return {
    session_id: record.sessionId,
    callee_id: record.calleeId,
    caller_id: record.callerId,
    message_id: record.messageId,
    owner: record.owner,
    epoch: record.epoch,
    state: record.state,
    request: record.request,
    user_id: record.userId ?? null,
    app_id: record.appId ?? null,
    trace: record.trace,
    session_token: record.token ?? null,
    version: record.version ?? null,
    risk_level: record.riskLevel ?? null,
    data_classification: record.dataClassification ?? null,
    safety_envelope: Object.keys(record.safetyEnvelope).length > 0 ? JSON.stringify(record.safetyEnvelope) : null,
    max_duration_ms: record.maxDurationMs ?? null,
    abort_timeout_ms: record.abortTimeoutMs ?? null,
    extensions: record.extensions.length > 0 ? JSON.stringify(record.extensions) : null,
    created_at: record.createdAt,
    updated_at: record.updatedAt,
    running_since: record.runningSince ?? null,
    deadline_at: record.deadlineAt ?? null,
    closed_at: record.closedAt ?? null,
    slot: record.slot ?? null,
    paused_by: record.pausedBy ?? null,
    violation: record.violation === undefined ? null : JSON.stringify(record.violation),
    published_through: record.publishedThrough,
    active: record.active ? 1 : null,
  };
}

/** What a transition changes, for a patch. */
export function changes(before: SessionRecord, after: SessionRecord): Row {
  const [old, fresh] = [rowOf(before), rowOf(after)];
  return Object.fromEntries(Object.entries(fresh).filter(([column, value]) => old[column] !== value));
}
