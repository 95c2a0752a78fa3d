import type { Key, Range, Row, Store, Write } from '../shared/store/store.ts';

const PAGE = 500;

/** How much a caller keeps in its store. */
export interface StorageReport {
  readonly submissions: Readonly<Record<'open' | 'accepted' | 'rejected' | 'abandoned', number>>;
  readonly sessions: { readonly open: number; readonly ended: number };
  readonly parked: { readonly waiting: number; readonly failed: number };
}

export async function reportStorage(store: Store, callerId: string): Promise<StorageReport> {
  const submissions = (status: string) => count(store, 'submissions', 'by_status', [callerId, status]);
  const parked = (kind: string) => count(store, 'parked', 'by_kind', [callerId, kind]);
  return {
    submissions: {
      open: await submissions('open'),
      accepted: await submissions('accepted'),
      rejected: await submissions('rejected'),
      abandoned: await submissions('abandoned'),
    },
    sessions: {
      open: await count(store, 'follows', 'by_open', [callerId, 1]),
      ended: await count(store, 'follows', 'by_ended', [callerId]),
    },
    parked: { waiting: await parked('waiting'), failed: await parked('failed') },
  };
}

/** Forgets sessions that ended, and submits that were answered, before a time (HCP-226). Answers how many of both. */
export async function purgeCaller(store: Store, callerId: string, before: number): Promise<number> {
  let purged = 0;
  for await (const rows of pages(store, 'follows', 'by_ended', { where: [callerId], to: before })) {
    for (const row of rows) await purgeSession(store, [callerId, String(row.session_id)]);
    purged += rows.length;
  }
  for (const status of ['accepted', 'rejected', 'abandoned']) {
    const range = { where: [callerId, status], to: before };
    for await (const rows of pages(store, 'submissions', 'by_status', range)) {
      await store.commit(rows.map((row) => ({ delete: 'submissions', key: [callerId, String(row.message_id)] })));
      purged += rows.length;
    }
  }
  return purged;
}

/** What is still parked with its reason stays: somebody has to look at it. */
async function purgeSession(store: Store, key: readonly [string, string]): Promise<void> {
  const parked = await store.scan('parked', 'key', { where: key, limit: 1000 });
  const writes = parked
    .filter(({ kind }) => kind === 'waiting')
    .map((row): Write => ({ delete: 'parked', key: [...key, Number(row.sequence)] }));
  await store.commit([...writes, { delete: 'follows', key }]);
}

async function count(store: Store, table: string, index: string, where: Key): Promise<number> {
  let found = 0;
  for await (const rows of pages(store, table, index, { where })) found += rows.length;
  return found;
}

/** All rows of a stretch, page by page. */
export async function* pages(store: Store, table: string, index: string, range: Range): AsyncIterable<readonly Row[]> {
  let after: Row | undefined;
  for (;;) {
    const rows = await store.scan(table, index, { ...range, limit: PAGE, ...(after && { after }) });
    if (rows.length > 0) yield rows;
    if (rows.length < PAGE) return;
    after = rows.at(-1);
  }
}
