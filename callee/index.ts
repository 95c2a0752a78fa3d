export {
  type AuditFinding,
  type AuditHead,
  type AuditRecord,
  auditHeads,
  type EvidenceReport,
  exportEvidence,
  readAudit,
  verifyAudit,
  verifyEvidence,
} from '../session/audit/index.ts';
export type { Checkpoint } from '../session/checkpoints.ts';
export { createKeyRing, type KeyRing } from '../session/keys/key-ring.ts';
export { generateKey } from '../session/keys/ring-key.ts';
export { openStoredKeyRing } from '../session/keys/stored-keys.ts';
export { SESSION_STATES, type SessionState } from '../session/lifecycle.ts';
export type { Approval, ApprovalStatus, Vote } from './approvals/approval.ts';
export type { ApprovalDesk, PendingApproval, VoteOptions } from './approvals/desk.ts';
export { type ApprovalDeskOptions, openApprovalDesk } from './approvals/open-desk.ts';
export {
  type ArtifactAddress,
  type ArtifactHandlerOptions,
  artifactUri,
  createArtifactHandler,
  type DescribeFileOptions,
  describeFile,
  parseArtifactUri,
} from './artifacts/index.ts';
export { type Callee, createCallee } from './callee.ts';
export type { CapabilityOptions } from './capabilities.ts';
export {
  type CommandChannel,
  type CommandChannelOptions,
  openCommandChannel,
  type ReceivedCommand,
} from './command-channel.ts';
export {
  acceptKnownCallers,
  type CallerRights,
  GATE_STEPS,
  type GateRequest,
  type GateStep,
  type Policy,
  type Refusal,
  type VendorCheck,
} from './gate/policy.ts';
export type { Assessor, RiskAssessment, RiskFinding, RiskRule } from './gate/risk.ts';
export type { ArtifactOptions, CalleeOptions } from './options.ts';
export {
  type Cleanup,
  type Executor,
  type FailureOptions,
  type Guard,
  isTaskFailure,
  type Procedure,
  type Run,
  TaskFailure,
  type TaskResult,
} from './run.ts';
