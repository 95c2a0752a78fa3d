// Generated from the JSON Schemas in this folder by `npm run generate`. Change those instead.
import abort from './abort.schema.json' with { type: 'json' };
import capability from './capability.schema.json' with { type: 'json' };
import checkpoint from './checkpoint.schema.json' with { type: 'json' };
import common from './common.schema.json' with { type: 'json' };
import envelope from './envelope.schema.json' with { type: 'json' };
import event from './event.schema.json' with { type: 'json' };
import eventCheckpointCreated from './events/checkpoint_created.schema.json' with { type: 'json' };
import eventError from './events/error.schema.json' with { type: 'json' };
import eventIntermediateResult from './events/intermediate_result.schema.json' with { type: 'json' };
import eventLog from './events/log.schema.json' with { type: 'json' };
import eventProgress from './events/progress.schema.json' with { type: 'json' };
import eventSessionClosed from './events/session_closed.schema.json' with { type: 'json' };
import eventSessionCreated from './events/session_created.schema.json' with { type: 'json' };
import eventStateChanged from './events/state_changed.schema.json' with { type: 'json' };
import eventWarning from './events/warning.schema.json' with { type: 'json' };
import eventXApprovalPending from './events/x-approval-pending.schema.json' with { type: 'json' };
import eventXReplayUnavailable from './events/x-replay-unavailable.schema.json' with { type: 'json' };
import eventXStatus from './events/x-status.schema.json' with { type: 'json' };
import safetyEnvelope from './safety_envelope.schema.json' with { type: 'json' };
import sessionToken from './session_token.schema.json' with { type: 'json' };
import taskAccepted from './task_accepted.schema.json' with { type: 'json' };
import taskCompleted from './task_completed.schema.json' with { type: 'json' };
import taskFailed from './task_failed.schema.json' with { type: 'json' };
import taskRejected from './task_rejected.schema.json' with { type: 'json' };
import taskSubmit from './task_submit.schema.json' with { type: 'json' };
import xPause from './x-pause.schema.json' with { type: 'json' };
import xReplay from './x-replay.schema.json' with { type: 'json' };
import xResume from './x-resume.schema.json' with { type: 'json' };
import xStatus from './x-status.schema.json' with { type: 'json' };

/** Every schema by the last part of its `$id`: `task_submit`, `event:log`, `common` … */
export const schemas = {
  'abort': abort,
  'capability': capability,
  'checkpoint': checkpoint,
  'common': common,
  'envelope': envelope,
  'event': event,
  'event:checkpoint_created': eventCheckpointCreated,
  'event:error': eventError,
  'event:intermediate_result': eventIntermediateResult,
  'event:log': eventLog,
  'event:progress': eventProgress,
  'event:session_closed': eventSessionClosed,
  'event:session_created': eventSessionCreated,
  'event:state_changed': eventStateChanged,
  'event:warning': eventWarning,
  'event:x-approval-pending': eventXApprovalPending,
  'event:x-replay-unavailable': eventXReplayUnavailable,
  'event:x-status': eventXStatus,
  'safety_envelope': safetyEnvelope,
  'session_token': sessionToken,
  'task_accepted': taskAccepted,
  'task_completed': taskCompleted,
  'task_failed': taskFailed,
  'task_rejected': taskRejected,
  'task_submit': taskSubmit,
  'x-pause': xPause,
  'x-replay': xReplay,
  'x-resume': xResume,
  'x-status': xStatus,
};
