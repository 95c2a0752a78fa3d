import type { Db } from 'mongodb';
import { HcpError } from '../../errors.ts';
import type { TableLayout } from '../layout.ts';
import { isOtherIndex } from './connection.ts';
import { indexKeyOf, partialFilterOf } from './documents.ts';
import { isDuplicate, toStoreError } from './errors.ts';

/** Raised when what exists has to change; new tables, indexes and nullable columns are simply added. */
const LAYOUT_VERSION = 1;

/** Makes the collections and indexes that are missing. Several processes may start at once. */
export async function prepareLayout(db: Db, tables: Iterable<TableLayout>): Promise<void> {
  try {
    const found = await claimLayout(db);
    if (found > LAYOUT_VERSION) {
      throw new HcpError(
        'store_unsupported',
        `The store in this database has layout ${found}, and this version of the SDK knows ${LAYOUT_VERSION} at most`,
      );
    }
    await Promise.all(Array.from(tables, (table) => prepareTable(db, table)));
  } catch (error) {
    throw toStoreError(error);
  }
}

async function claimLayout(db: Db): Promise<number> {
  const layouts = db.collection<{ _id: string; version: number }>('hcp__layout');
  const claim = () =>
    layouts.findOneAndUpdate(
      { _id: 'store' },
      { $max: { version: LAYOUT_VERSION } },
      { upsert: true, returnDocument: 'after' },
    );
  try {
    return (await claim())?.version ?? LAYOUT_VERSION;
  } catch (error) {
    // Two processes made the row at once: it is there now.
    if (!isDuplicate(error)) throw error;
    return (await claim())?.version ?? LAYOUT_VERSION;
  }
}

/** Resolves when a majority has everything that was written before: a write of no other use. */
export async function writeBarrier(db: Db): Promise<void> {
  const layouts = db.collection<{ _id: string; written: number }>('hcp__layout');
  await layouts.updateOne({ _id: 'barrier' }, { $inc: { written: 1 } }, { upsert: true });
}

const NAMESPACE_EXISTS = 48;

async function prepareTable(db: Db, table: TableLayout): Promise<void> {
  const name = `hcp_${table.name}`;
  if (table.indexes.length === 0) {
    await db.createCollection(name).catch((error) => {
      if (error.code !== NAMESPACE_EXISTS) throw error;
    });
    return;
  }
  try {
    await db.collection(name).createIndexes(
      table.indexes.map((index) => {
        const partialFilterExpression = partialFilterOf(index);
        return {
          name: index.name,
          key: indexKeyOf(index),
          unique: index.unique,
          ...(partialFilterExpression && { partialFilterExpression }),
        };
      }),
    );
  } catch (error) {
    if (!isOtherIndex(error)) throw error;
    throw new HcpError('store_unsupported', `An index of ${name} cannot be made as declared: ${error.message}`, {
      cause: error,
    });
  }
}
