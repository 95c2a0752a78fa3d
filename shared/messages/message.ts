import type {
  Abort,
  CheckpointCreatedData,
  Envelope,
  ErrorData,
  EventMessage,
  IntermediateResultData,
  LogData,
  ProgressData,
  SessionClosedData,
  SessionCreatedData,
  StateChangedData,
  TaskAccepted,
  TaskCompleted,
  TaskFailed,
  TaskRejected,
  TaskSubmit,
  WarningData,
  XApprovalPendingData,
  XPause,
  XReplay,
  XReplayUnavailableData,
  XResume,
  XStatus,
  XStatusData,
} from '../../schemas/types.ts';

/** The seven messages of HCP by their `type`. */
export interface Messages {
  task_submit: TaskSubmit;
  abort: Abort;
  task_accepted: TaskAccepted;
  task_rejected: TaskRejected;
  event: EventMessage;
  task_completed: TaskCompleted;
  task_failed: TaskFailed;
}

/** The commands of the extensions we know, by their `type`. Sent only where they were negotiated. */
export interface ExtensionCommands {
  'x-replay': XReplay;
  'x-status': XStatus;
  'x-pause': XPause;
  'x-resume': XResume;
}

/** The `data` of the events of the extensions we know, by their `event_type`. */
export interface ExtensionEventData {
  'x-replay-unavailable': XReplayUnavailableData;
  'x-status': XStatusData;
  'x-approval-pending': XApprovalPendingData;
}

/** The `data` of the nine standard events by their `event_type`. */
export interface EventData {
  session_created: SessionCreatedData;
  state_changed: StateChangedData;
  progress: ProgressData;
  intermediate_result: IntermediateResultData;
  log: LogData;
  warning: WarningData;
  error: ErrorData;
  checkpoint_created: CheckpointCreatedData;
  session_closed: SessionClosedData;
}

/** A message of an extension we do not know: only its envelope is checked. */
export interface ExtensionMessage extends Omit<Envelope, 'type'> {
  type: `x-${string}`;
}

export type HcpMessage = Messages[keyof Messages] | ExtensionCommands[keyof ExtensionCommands] | ExtensionMessage;

/** The version we speak; any other `1.x` is understood too. */
export const HCP_VERSION = '1.0';

/** Carries the `message_id` of the `task_submit` that a `task_accepted` or `task_rejected` answers (D-03). */
export const IN_REPLY_TO_HEADER = 'x-hcp-in-reply-to';
