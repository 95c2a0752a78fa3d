import { scanAll } from '../../shared/store/scan-all.ts';
import type { StoreReader } from '../../shared/store/store.ts';
import { type AuditHead, type AuditRecord, auditRecordOf } from './record.ts';

/** What is on record about one session, in order of time. */
export async function* readAudit(store: StoreReader, calleeId: string, sessionId: string): AsyncIterable<AuditRecord> {
  for await (const row of scanAll(store, 'audit', 'by_session', { where: [calleeId, sessionId] })) {
    yield auditRecordOf(row);
  }
}

/** The ends of all chains of a callee. Kept at another place, they are the anchors of a later verification. */
export async function auditHeads(store: StoreReader, calleeId: string): Promise<AuditHead[]> {
  const heads: AuditHead[] = [];
  for await (const { chain, length, hash } of scanAll(store, 'audit_heads', 'key', { where: [calleeId] })) {
    heads.push({ chain: String(chain), length: Number(length), hash: String(hash) });
  }
  return heads;
}
