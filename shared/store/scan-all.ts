import type { Range, Row, StoreReader } from './store.ts';

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
