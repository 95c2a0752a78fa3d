export { AuditChain } from './chain.ts';
export { type EvidenceSource, exportEvidence } from './evidence.ts';
export { inputsHash } from './inputs-hash.ts';
export { auditHeads, readAudit } from './read.ts';
export type { AuditDraft, AuditHead, AuditKind, AuditRecord } from './record.ts';
export { type AuditFinding, type VerifyAuditOptions, verifyAudit } from './verify.ts';
export { type EvidenceReport, verifyEvidence } from './verify-evidence.ts';
