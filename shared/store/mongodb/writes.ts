import type { AnyBulkWriteOperation, ClientSession, Collection, UpdateOneModel } from 'mongodb';
import type { CheckedWrite, Values } from '../engine.ts';
import type { TableLayout } from '../layout.ts';
import type { Conflict, Key } from '../store.ts';
import { filterOf, idOf, type RowDocument, toDocument, updateOf } from './documents.ts';
import { isDuplicate } from './errors.ts';

export type CollectionOf = (table: TableLayout) => Collection<RowDocument>;

type Reason = Conflict['reason'];

/** Changed by a check, so that a concurrent write of the same row collides: a read alone would let both commit. */
const CHECKED = { $inc: { _checked: 1 } };

/** Does one write in one command (and a second one to find out why it did not match). */
export async function applyOne(
  collectionOf: CollectionOf,
  session: ClientSession,
  write: CheckedWrite,
): Promise<Reason | undefined> {
  try {
    return await attempt(collectionOf(write.table), session, write);
  } catch (error) {
    if (isDuplicate(error)) return 'exists';
    throw error;
  }
}

async function attempt(
  rows: Collection<RowDocument>,
  session: ClientSession,
  write: CheckedWrite,
): Promise<Reason | undefined> {
  const { table, key } = write;
  const whyNot = async (): Promise<Reason> => ((await exists(rows, session, table, key)) ? 'mismatch' : 'missing');
  switch (write.kind) {
    case 'insert':
      await rows.insertOne(toDocument(table, write.row), { session });
      return undefined;
    case 'put': {
      if (write.tests === undefined) return putAny(rows, session, table, key, write.row);
      const filter = filterOf(table, key, write.tests);
      const { matchedCount } = await rows.replaceOne(filter, toDocument(table, write.row), { session });
      return matchedCount === 1 ? undefined : whyNot();
    }
    case 'patch': {
      const { matchedCount } = await rows.updateOne(filterOf(table, key, write.tests), updateOf(write.set), {
        session,
      });
      return matchedCount === 1 ? undefined : whyNot();
    }
    case 'delete': {
      const { deletedCount } = await rows.deleteOne(filterOf(table, key, write.tests), { session });
      return deletedCount === 1 || write.tests === undefined ? undefined : whyNot();
    }
    case 'check': {
      const filter = filterOf(table, key, write.tests);
      const found = session.inTransaction()
        ? (await rows.updateOne(filter, CHECKED, { session })).matchedCount === 1
        : (await rows.findOne(filter, { session, projection: { _id: 1 } })) !== null;
      return found ? undefined : whyNot();
    }
    case 'absent':
      if (await exists(rows, session, table, key)) return 'exists';
      if (session.inTransaction()) {
        // Comes and goes within the transaction, so that a concurrent insert collides.
        await rows.insertOne({ _id: idOf(table, key) }, { session });
        await rows.deleteOne(filterOf(table, key), { session });
      }
      return undefined;
  }
}

/** Upserts that race for a new key can collide even though each would find the other's row: the loser updates it. */
async function putAny(
  rows: Collection<RowDocument>,
  session: ClientSession,
  table: TableLayout,
  key: Key,
  row: Values,
): Promise<undefined> {
  const put = () => rows.replaceOne(filterOf(table, key), toDocument(table, row), { session, upsert: true });
  try {
    await put();
  } catch (error) {
    if (session.inTransaction() || !isDuplicate(error) || !('_id' in (error.keyPattern ?? {}))) throw error;
    await put();
  }
  return undefined;
}

async function exists(
  rows: Collection<RowDocument>,
  session: ClientSession,
  table: TableLayout,
  key: Key,
): Promise<boolean> {
  return (await rows.findOne(filterOf(table, key), { session, projection: { _id: 1 } })) !== null;
}

/** The writes of one table that go out together: at most one command of each kind. */
interface Group {
  readonly table: TableLayout;
  readonly inserts: RowDocument[];
  readonly updates: AnyBulkWriteOperation<RowDocument>[];
  readonly deletes: AnyBulkWriteOperation<RowDocument>[];
  readonly sureDeletes: AnyBulkWriteOperation<RowDocument>[];
}

function stageOf(write: Exclude<CheckedWrite, { kind: 'absent' }>): number {
  if (write.kind === 'insert') return 0;
  if (write.kind !== 'delete') return 1;
  return write.tests === undefined ? 3 : 2;
}

/**
 * Orders writes by table and, within it, inserts before updates before deletes (the conditional ones first): few
 * commands, whatever the order they were given in. If they succeed in this order they do in the given one: no write comes before another of the same row
 * that it should follow, and a unique value is never freed earlier. The reverse does not hold, so a failure is looked
 * into write by write. `undefined` when a row would be touched in the wrong order.
 */
export function group(writes: readonly CheckedWrite[]): readonly Group[] | undefined {
  const groups = new Map<string, Group>();
  const stages = new Map<string, number>();
  for (const write of writes) {
    if (write.kind === 'absent') return undefined;
    const { table } = write;
    const stage = stageOf(write);
    const row = JSON.stringify([table.name, write.key]);
    if ((stages.get(row) ?? 0) > stage) return undefined;
    stages.set(row, stage);
    let found = groups.get(table.name);
    if (found === undefined) {
      found = { table, inserts: [], updates: [], deletes: [], sureDeletes: [] };
      groups.set(table.name, found);
    }
    if (write.kind === 'insert') found.inserts.push(toDocument(table, write.row));
    else if (write.kind !== 'delete') found.updates.push(updateModel(write));
    else (write.tests === undefined ? found.sureDeletes : found.deletes).push(deleteModel(write));
  }
  return [...groups.values()];
}

function updateModel(
  write: Extract<CheckedWrite, { kind: 'put' | 'patch' | 'check' }>,
): AnyBulkWriteOperation<RowDocument> {
  const filter = filterOf(write.table, write.key, write.tests);
  if (write.kind === 'put') {
    const replacement = toDocument(write.table, write.row);
    return { replaceOne: { filter, replacement, upsert: write.tests === undefined } };
  }
  const update: UpdateOneModel<RowDocument>['update'] = write.kind === 'patch' ? updateOf(write.set) : CHECKED;
  return { updateOne: { filter, update } };
}

function deleteModel(write: Extract<CheckedWrite, { kind: 'delete' }>): AnyBulkWriteOperation<RowDocument> {
  return { deleteOne: { filter: filterOf(write.table, write.key, write.tests) } };
}

/** Answers whether every write found what it wanted; when not, the transaction is of no more use. */
export async function applyGroups(
  collectionOf: CollectionOf,
  session: ClientSession,
  groups: readonly Group[],
): Promise<boolean> {
  try {
    for (const { table, inserts, updates, deletes, sureDeletes } of groups) {
      const rows = collectionOf(table);
      if (inserts.length > 0) await rows.insertMany(inserts, { session });
      if (updates.length > 0) {
        const { matchedCount, upsertedCount } = await rows.bulkWrite(updates, { session });
        if (matchedCount + upsertedCount !== updates.length) return false;
      }
      if (deletes.length > 0) {
        const { deletedCount } = await rows.bulkWrite(deletes, { session });
        if (deletedCount !== deletes.length) return false;
      }
      if (sureDeletes.length > 0) await rows.bulkWrite(sureDeletes, { session });
    }
    return true;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}
