import type { EventMessage } from '../../schemas/types.ts';
import { readLog } from '../../session/log.ts';
import type { Store, StoreTransaction } from '../../shared/store/store.ts';
import { hcpTables, type Tables } from '../../shared/store/tables.ts';

/** Our tables, and one of the program's own. */
export const LEDGER_TABLES: Tables = {
  ...hcpTables,
  ledger: {
    columns: { session_id: 'text', sequence: 'integer', after: 'integer', message_id: 'text' },
    key: ['session_id', 'sequence'],
    indexes: {},
  },
};

/** Writes the event down, and which one was the last before it. A second time it throws. */
export async function enter({ session_id, message_id, payload }: EventMessage, tx: StoreTransaction): Promise<void> {
  const [last] = await tx.scan('ledger', 'key', { where: [session_id], order: 'descending', limit: 1 });
  const row = { session_id, sequence: payload.sequence, after: last?.sequence ?? 0, message_id };
  await tx.write([{ insert: 'ledger', row }]);
}

/** What was written for a session: [sequence, the one before it] in the order of the sequences. */
export async function entries(store: Store, sessionId: string): Promise<[sequence: number, after: number][]> {
  const found: [number, number][] = [];
  for (;;) {
    const from = (found.at(-1)?.[0] ?? -1) + 1;
    const rows = await store.scan('ledger', 'key', { where: [sessionId], from, limit: 1000 });
    found.push(...rows.map((row): [number, number] => [Number(row.sequence), Number(row.after)]));
    if (rows.length < 1000) return found;
  }
}

/** The events of a session by their message ids: as written by the handler, and as its callee logged them. */
export async function bothSides(store: Store, sessionId: string): Promise<{ ledger: string[]; log: string[] }> {
  const rows = await store.scan('ledger', 'key', { where: [sessionId], limit: 1000 });
  const log: string[] = [];
  for await (const { sequence, messageId } of readLog(store, sessionId)) {
    if (sequence !== undefined) log.push(`${sequence} ${messageId}`);
  }
  return { ledger: rows.map((row) => `${row.sequence} ${row.message_id}`), log };
}

/** The entries of a handler that saw just these, once each and in this order. */
export function inOrder(sequences: readonly number[]): [sequence: number, after: number][] {
  return sequences.map((sequence, index) => [sequence, sequences[index - 1] ?? 0]);
}
