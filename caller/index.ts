export type { PatchOperation } from '../shared/json-patch.ts';
export type { EventHandler } from './applier.ts';
export type { PendingApproval } from './approvals.ts';
export { type Caller, createCaller, type Session } from './caller.ts';
export type { PauseOptions } from './commands.ts';
export { applyCure } from './cure.ts';
export {
  type CalleeMessage,
  type EventChannel,
  type EventChannelOptions,
  type EventReceiver,
  openEventChannel,
  type ReceivedEvent,
  type Verdict,
} from './event-channel.ts';
export type { SessionStatus } from './followed-session.ts';
export type { StorageReport } from './housekeeping.ts';
export type { CallerListeners, CallerOptions } from './options.ts';
export type { Outcome } from './outcome.ts';
export type { ParkedEvent } from './parked-events.ts';
export type { Partitions } from './partitions.ts';
export type { Task } from './submissions.ts';
