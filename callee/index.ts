export type { Checkpoint } from '../session/checkpoints.ts';
export { SESSION_STATES, type SessionState } from '../session/lifecycle.ts';
export { type Callee, createCallee } from './callee.ts';
export {
  type CommandChannel,
  type CommandChannelOptions,
  openCommandChannel,
  type ReceivedCommand,
} from './command-channel.ts';
export { acceptKnownCallers, type GateRequest, type Policy, type PolicyDecision } from './gate.ts';
export type { CalleeOptions } from './options.ts';
export {
  type Cleanup,
  type Executor,
  type FailureOptions,
  isTaskFailure,
  type Run,
  TaskFailure,
  type TaskResult,
} from './run.ts';
