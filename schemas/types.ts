// Generated from the JSON Schemas in this folder by `npm run generate`. Change those instead.
/**
 * Protocol version, major.minor. Another major version is refused (D-23).
 */
export type HcpVersion = string;
/**
 * UUID version 4. Compared without regard to case (D-31).
 */
export type Uuid = string;
/**
 * ISO 8601 in UTC, with Z or +00:00 (D-30).
 */
export type Timestamp = string;
/**
 * R1 read-only, R2 reversible in a sandbox, R3 irreversible in a controlled place, R4 physical or sensitive systems, R5 life safety.
 */
export type RiskLevel = 'R1' | 'R2' | 'R3' | 'R4' | 'R5';
/**
 * ISO 8601 duration above zero: weeks alone, or days, hours, minutes and seconds; decimals only in the seconds (D-29).
 */
export type Duration = string;
/**
 * Name of a caller or callee; part of queue names and routing keys, so no dot, star or hash (D-04).
 */
export type HarnessIdText = string;
/**
 * T1 no limits, T2 access logging, T3 encryption in transit and at rest, T4 as T3 with audit trail and access approval.
 */
export type DataClassification = 'T1' | 'T2' | 'T3' | 'T4';
/**
 * The eight states of a session.
 */
export type SessionState =
  'PENDING' | 'RUNNING' | 'PAUSED' | 'ABORTING' | 'REJECTED' | 'COMPLETED' | 'FAILED' | 'ABORTED';

/**
 * Caller to callee: stop this session. Acknowledged by state_changed to ABORTING (D-10).
 */
export interface Abort {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'abort';
  payload: AbortPayload;
}
/**
 * Why, and the right to ask.
 */
export interface AbortPayload {
  /**
   * Free text for the logs.
   */
  reason?: string;
  /**
   * The session's token. Secret.
   */
  session_token?: string;
}
/**
 * A callee's published contract for one kind of task.
 */
export interface Capability {
  /**
   * How callers ask for it.
   */
  name: string;
  /**
   * Semantic version.
   */
  version: string;
  /**
   * What it does, for people and models.
   */
  description: string;
  /**
   * JSON Schema of the inputs.
   */
  input_schema: {
    [k: string]: unknown;
  };
  /**
   * JSON Schema of the outputs.
   */
  output_schema: {
    [k: string]: unknown;
  };
  safety: CapabilitySafety;
  constraints?: CapabilityConstraints;
  /**
   * Extensions offered (P9).
   */
  extensions?: string[];
}
/**
 * What can happen.
 */
export interface CapabilitySafety {
  risk_ceiling: RiskLevel;
  /**
   * Effective from assessed risk R3 on.
   */
  requires_human_approval: boolean;
  /**
   * Whether it moves equipment.
   */
  involves_physical_resources: boolean;
  /**
   * What it uses.
   */
  resource_types?: string[];
  /**
   * What it can do harm by.
   */
  hazard_categories?: string[];
  /**
   * Labels of the domain (P1).
   */
  risk_tags?: string[];
}
/**
 * Limits of the callee.
 */
export interface CapabilityConstraints {
  max_duration?: Duration;
  /**
   * Sessions at once.
   */
  concurrent_limit?: number;
}
/**
 * A stored place in a session from which the work may continue.
 */
export interface Checkpoint {
  /**
   * Unique in the session.
   */
  checkpoint_id: string;
  session_id: Uuid;
  /**
   * Sequence of its checkpoint_created event.
   */
  sequence: number;
  /**
   * What it holds.
   */
  description: string;
  /**
   * Whether the work can continue from it.
   */
  resumable: boolean;
  created_at: Timestamp;
  /**
   * Whatever the executor needs to go on. Any JSON.
   */
  data: {} | unknown[] | string | number | boolean | null;
  /**
   * Hex SHA-256 of the JSON text of data: a damaged checkpoint is never used.
   */
  data_sha256: string;
}
/**
 * Any JSON object.
 */
export interface JsonObject {
  [k: string]: unknown;
}
/**
 * Extensions by name ("name/major" or "domain/name/major"), each with its own parameters (P9).
 */
export interface Extensions {
  [k: string]: unknown;
}
/**
 * A file or other product, given by address, never inline.
 */
export interface Artifact {
  /**
   * Human-readable name.
   */
  name: string;
  /**
   * MIME type.
   */
  type: string;
  /**
   * Where the callee keeps it; the scheme is the callee's choice.
   */
  uri: string;
  /**
   * Size in bytes.
   */
  size_bytes?: number;
  /**
   * Algorithm and digest, e.g. "sha256:…".
   */
  checksum?: string;
}
/**
 * What the execution took.
 */
export interface ExecutionSummary {
  duration?: Duration;
  /**
   * Steps done.
   */
  steps_executed?: number;
  /**
   * Checkpoints stored.
   */
  checkpoints_created?: number;
  /**
   * What touched the safety limits.
   */
  risk_events?: string[];
  /**
   * Warnings given.
   */
  warnings?: string[];
}
/**
 * The outer shape of every message: the AMQP body, one UTF-8 JSON object.
 */
export interface Envelope {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  /**
   * The session, or null in task_submit and task_rejected (D-01).
   */
  session_id: Uuid | null;
  /**
   * One of the seven message types, or an extension's own, starting with "x-".
   */
  type: string;
  payload: JsonObject;
}
/**
 * Callee to caller: something happened in the session. The only sequenced message.
 */
export interface EventMessage {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'event';
  payload: EventPayload;
}
/**
 * One step of the session's event stream.
 */
export interface EventPayload {
  /**
   * One of the nine standard events, or another: receivers accept any (D-25).
   */
  event_type: string;
  /**
   * Position in the session's stream: 1, 2, 3 … without holes (D-05).
   */
  sequence: number;
  /**
   * By event type: see the schemas in events/.
   */
  data: {
    [k: string]: unknown;
  };
}
/**
 * A checkpoint has been stored.
 */
export interface CheckpointCreatedData {
  /**
   * Unique in the session.
   */
  checkpoint_id: string;
  /**
   * What it holds.
   */
  description: string;
  /**
   * Whether the work can continue from it.
   */
  resumable: boolean;
  created_at?: Timestamp;
}
/**
 * An error that does not end the session: a fatal one is task_failed.
 */
export interface ErrorData {
  /**
   * Machine-readable.
   */
  code: string;
  /**
   * In words.
   */
  message: string;
  /**
   * Whether the callee expects to recover.
   */
  recoverable: boolean;
}
/**
 * A result before the end. Large data is given by address.
 */
export interface IntermediateResultData {
  /**
   * What kind of result.
   */
  result_type: string;
  /**
   * Any JSON.
   */
  data: {} | unknown[] | string | number | boolean | null;
  /**
   * Whether more of it follows.
   */
  is_partial: boolean;
}
/**
 * A line of the execution's log.
 */
export interface LogData {
  /**
   * How serious.
   */
  level: 'info' | 'warn' | 'error';
  /**
   * The line.
   */
  message: string;
  details?: JsonObject;
}
/**
 * How far the work is.
 */
export interface ProgressData {
  /**
   * What is being done.
   */
  stage: string;
  /**
   * Share done.
   */
  percent?: number;
  /**
   * In words.
   */
  message: string;
}
/**
 * The session is over; its last event.
 */
export interface SessionClosedData {
  /**
   * How it ended.
   */
  final_state: 'COMPLETED' | 'FAILED' | 'ABORTED' | 'REJECTED';
  /**
   * As in the last state_changed.
   */
  reason: string;
}
/**
 * The session exists; its first event.
 */
export interface SessionCreatedData {
  state: SessionState;
  risk_level: RiskLevel;
  /**
   * As in task_accepted. Secret.
   */
  session_token: string;
}
/**
 * The session moved to another state.
 */
export interface StateChangedData {
  from_state: SessionState;
  to_state: SessionState;
  /**
   * A token such as safety_check_passed or abort_requested.
   */
  reason: string;
}
/**
 * Something is not as it should be; the work goes on.
 */
export interface WarningData {
  /**
   * Machine-readable.
   */
  code: string;
  /**
   * In words.
   */
  message: string;
  details?: JsonObject;
}
/**
 * With approval/1 asked for: a human decides about the task; an abort withdraws it.
 */
export interface XApprovalPendingData {
  in_reply_to: Uuid;
  expires_at: Timestamp;
  assessed_risk_level: RiskLevel;
}
/**
 * The answer to an x-replay for the part that was not published again.
 */
export interface XReplayUnavailableData {
  /**
   * The first one concerned.
   */
  from_sequence: number;
  /**
   * The last one concerned.
   */
  to_sequence: number;
  /**
   * not_said: beyond the last event of the session. not_held: said, but no longer stored. limit: more than one request may ask for, ask again. Or another.
   */
  reason: string;
}
/**
 * The answer to an x-status: the session as it is stored.
 */
export interface XStatusData {
  state: SessionState;
  /**
   * The last event of the session, not counting this one.
   */
  last_sequence: number;
  /**
   * Whether there is a task_completed or task_failed.
   */
  result_sent: boolean;
}
/**
 * The limits within which the callee acts; defined by the callee alone.
 */
export interface SafetyEnvelope {
  /**
   * Limits by parameter name.
   */
  parameters?: {
    [k: string]: EnvelopeLimit;
  };
  /**
   * Actions never done.
   */
  prohibited_actions?: string[];
  /**
   * Condition to procedure name.
   */
  emergency_procedures?: {
    [k: string]: string;
  };
}
/**
 * Bounds of one parameter.
 */
export interface EnvelopeLimit {
  /**
   * Lowest allowed value.
   */
  min?: number;
  /**
   * Highest allowed value.
   */
  max?: number;
  /**
   * Unit of both.
   */
  unit?: string;
  /**
   * True: the action is not done and the session fails. False: a warning.
   */
  hard_limit?: boolean;
}
/**
 * What the callee keeps of an approval. Only the opaque token goes on the wire.
 */
export interface SessionToken {
  /**
   * The opaque text. Secret.
   */
  token: string;
  issued_at: Timestamp;
  expires_at: Timestamp;
  approved_risk_level: RiskLevel;
  approved_data_classification: DataClassification;
  constraints: TokenConstraints;
}
/**
 * The limits approved.
 */
export interface TokenConstraints {
  max_duration?: Duration;
  abort_timeout?: Duration;
}
/**
 * Callee to caller: the safety gate has let the task pass; here is its session.
 */
export interface TaskAccepted {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'task_accepted';
  payload: TaskAcceptedPayload;
}
/**
 * The terms of the session.
 */
export interface TaskAcceptedPayload {
  /**
   * Opaque proof of the approval. Secret: never logged.
   */
  session_token: string;
  risk_level: RiskLevel;
  data_classification?: DataClassification;
  safety_envelope?: SafetyEnvelope;
  constraints?: SessionConstraints;
  in_reply_to?: Uuid;
  extensions?: Extensions;
}
/**
 * The limits in force.
 */
export interface SessionConstraints {
  max_duration?: Duration;
  abort_timeout?: Duration;
}
/**
 * Callee to caller: the task is done.
 */
export interface TaskCompleted {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'task_completed';
  payload: TaskCompletedPayload;
}
/**
 * The result.
 */
export interface TaskCompletedPayload {
  /**
   * Conforms to the task's expected_output.
   */
  outputs: {
    [k: string]: unknown;
  };
  /**
   * Products of the work.
   */
  artifacts?: Artifact[];
  execution_summary?: ExecutionSummary;
  extensions?: Extensions;
}
/**
 * Callee to caller: the task could not be done.
 */
export interface TaskFailed {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'task_failed';
  payload: TaskFailedPayload;
}
/**
 * What went wrong, and what there is nevertheless.
 */
export interface TaskFailedPayload {
  /**
   * execution_error, timeout, safety_violation, resource_unavailable, internal_error or input_error; another is read as execution_error.
   */
  error_code: string;
  /**
   * The error in words.
   */
  error_message: string;
  error_details?: ErrorDetails;
  /**
   * What was produced before the failure.
   */
  partial_outputs?: {
    [k: string]: unknown;
  };
  /**
   * Products of the work.
   */
  artifacts?: Artifact[];
  execution_summary?: ExecutionSummary;
  extensions?: Extensions;
}
/**
 * Known fields and more.
 */
export interface ErrorDetails {
  /**
   * Where it happened.
   */
  phase?: string;
  /**
   * Which step.
   */
  step?: number;
  /**
   * The newest checkpoint.
   */
  last_checkpoint?: string;
  /**
   * Whether a new try may succeed.
   */
  recoverable?: boolean;
  /**
   * Whether to submit again (P8).
   */
  retryable?: boolean;
  retry_after?: Duration;
  [k: string]: unknown;
}
/**
 * Callee to caller: the task will not be done. No session exists.
 */
export interface TaskRejected {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  /**
   * Null; a UUID is tolerated (D-01).
   */
  session_id: Uuid | null;
  /**
   * The kind of message.
   */
  type: 'task_rejected';
  payload: TaskRejectedPayload;
}
/**
 * Why not, and what would help.
 */
export interface TaskRejectedPayload {
  /**
   * Open list (D-18): unauthorized, forbidden, invalid_input, risk_too_high, unsupported_version, capability_not_found, capability_version_unsupported, resource_unavailable, approval_denied, approval_timeout, withdrawn, internal_error, …
   */
  reason_code: string;
  /**
   * The reason in words.
   */
  reason_message: string;
  assessed_risk_level?: RiskLevel;
  /**
   * What to change to be accepted.
   */
  suggestion?: string;
  in_reply_to?: Uuid;
  extensions?: Extensions;
}
/**
 * Caller to callee: please do this task.
 */
export interface TaskSubmit {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  /**
   * Null: the callee makes the session id.
   */
  session_id: null;
  /**
   * The kind of message.
   */
  type: 'task_submit';
  payload: TaskSubmitPayload;
}
/**
 * The task.
 */
export interface TaskSubmitPayload {
  /**
   * Name of one of the callee's capabilities.
   */
  capability: string;
  /**
   * Wanted versions, a semver range.
   */
  capability_version?: string;
  caller_id: HarnessIdText;
  /**
   * The goal in words, for the callee's model.
   */
  intent: string;
  /**
   * Valid against the capability's input_schema.
   */
  inputs: {
    [k: string]: unknown;
  };
  constraints?: TaskConstraints;
  expected_output?: ExpectedOutput;
  context?: TaskContext;
  extensions?: Extensions;
}
/**
 * Limits the caller asks for.
 */
export interface TaskConstraints {
  max_duration?: Duration;
  /**
   * Handed to the executor, not enforced by the SDK.
   */
  confidence_threshold?: number;
  data_classification?: DataClassification;
  /**
   * A hint, never an AMQP priority.
   */
  priority?: 'low' | 'normal' | 'high' | 'urgent';
}
/**
 * What the outputs must look like to count as success.
 */
export interface ExpectedOutput {
  /**
   * A named format.
   */
  format?: string;
  /**
   * Each must be a key of the outputs.
   */
  required_fields?: string[];
  /**
   * JSON Schema of the outputs. Untrusted: compiled in bounds (HCP-311).
   */
  schema?: {
    [k: string]: unknown;
  };
}
/**
 * Background for the callee's model; free beyond the known fields.
 */
export interface TaskContext {
  /**
   * Why the task is wanted.
   */
  purpose?: string;
  /**
   * Sources worth reading.
   */
  references?: string[];
  /**
   * Anything else.
   */
  notes?: string;
  [k: string]: unknown;
}
/**
 * Caller to callee, with pause/1 in force: suspend the work.
 */
export interface XPause {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'x-pause';
  payload: XPausePayload;
}
/**
 * How, and the right to ask.
 */
export interface XPausePayload {
  /**
   * The session's token. Secret.
   */
  session_token?: string;
  /**
   * Why, for the logs.
   */
  reason?: string;
  /**
   * drain: at the next safe point of the work, at the latest when drain_timeout is over. immediate: now. Default: drain.
   */
  mode?: 'drain' | 'immediate';
  drain_timeout?: Duration;
}
/**
 * Caller to callee, with replay/1 in force: publish these events again.
 */
export interface XReplay {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'x-replay';
  payload: XReplayPayload;
}
/**
 * Which events, and the right to ask.
 */
export interface XReplayPayload {
  /**
   * The first one wanted.
   */
  from_sequence: number;
  /**
   * The last one wanted, not below the first.
   */
  to_sequence: number;
  /**
   * The session's token. Secret.
   */
  session_token?: string;
}
/**
 * Caller to callee, with pause/1 in force: go on with the work it suspended.
 */
export interface XResume {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'x-resume';
  payload: XResumePayload;
}
/**
 * The right to ask.
 */
export interface XResumePayload {
  /**
   * The session's token. Secret.
   */
  session_token?: string;
  /**
   * Why, for the logs.
   */
  reason?: string;
}
/**
 * Caller to callee, with status/1 in force: tell how this session is.
 */
export interface XStatus {
  hcp_version: HcpVersion;
  message_id: Uuid;
  timestamp: Timestamp;
  session_id: Uuid;
  /**
   * The kind of message.
   */
  type: 'x-status';
  payload: XStatusPayload;
}
/**
 * The right to ask.
 */
export interface XStatusPayload {
  /**
   * The session's token. Secret.
   */
  session_token?: string;
}
