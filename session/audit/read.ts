import type { Range, Row, StoreReader } from '../../shared/store/store.ts';
import { type AuditHead, type AuditRecord, auditRecordOf } from './record.ts';

const PAGE = 500;

/** Every row of a stretch of an index, page by page. */
export async function* scanAll(
  store: StoreReader,
  table: string,
  index: string,
  range: Pick<Range, 'where' | 'from' | 'to'>,
): AsyncIterable<Row> {
  let after: Row | undefined;
  for (;;) {
    const rows = await store.scan(table, index, { ...range, limit: PAGE, ...(after && { after }) });
    yield* rows;
    if (rows.length < PAGE) return;
    after = rows.at(-1);
  }
}

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
