import type { ClientSession } from 'mongodb';
import { expect, it } from 'vitest';
import { isHcpError } from '../../../../shared/errors.ts';
import { connectMongoDb } from '../../../../shared/store/mongodb/index.ts';
import { describeWith, freshDatabase, mongodb } from '../../../support/services/index.ts';
import { TABLES } from '../support/scene.ts';

describeWith('the layout of a MongoDB store', mongodb(), (server) => {
  it('is made once: a second start finds the indexes as they are', async () => {
    await using database = freshDatabase(server);
    const indexesAfterStart = async () => {
      await using store = await connectMongoDb({ url: database.url, tables: TABLES });
      return await store.client.db().collection('hcp_sessions').indexes();
    };

    const first = await indexesAfterStart();

    expect(first.map(({ name, key }) => ({ name, key }))).toEqual([
      { name: '_id_', key: { _id: 1 } },
      { name: 'by_owner', key: { owner: 1, version: 1, _id: 1 } },
    ]);
    expect(await indexesAfterStart()).toEqual(first);
  });

  it('gains new tables, indexes and nullable columns', async () => {
    await using database = freshDatabase(server);
    const { sessions, events } = TABLES;
    const older = await connectMongoDb({ url: database.url, tables: { sessions: { ...sessions, indexes: {} } } });
    await older.commit([{ insert: 'sessions', row: { id: 's', version: 1, owner: 'me' } }]);
    await older.close();

    const columns = { ...sessions.columns, note: 'text?' } as const;
    await using newer = await connectMongoDb({
      url: database.url,
      tables: { events, sessions: { ...sessions, columns } },
    });

    const rows = await newer.scan('sessions', 'by_owner', { where: ['me'] });
    expect(rows).toEqual([{ id: 's', version: 1, owner: 'me', note: null }]);
  });

  it('is refused when an index exists in another form', async () => {
    await using database = freshDatabase(server);
    await using first = await connectMongoDb({ url: database.url, tables: TABLES });
    const { sessions } = TABLES;
    const tables = { sessions: { ...sessions, indexes: { by_owner: { columns: ['owner'], unique: true } } } };

    const opening = connectMongoDb({ url: database.url, tables });

    await expect(opening).rejects.toSatisfy((error) => isHcpError(error, 'store_unsupported'));
    await expect(opening).rejects.toThrow(/hcp_sessions/);
    expect(await first.get('sessions', ['s'])).toBeUndefined();
  });

  it('is refused when a newer version made it', async () => {
    await using database = freshDatabase(server);
    await using first = await connectMongoDb({ url: database.url, tables: TABLES });
    const layouts = first.client.db().collection<{ _id: string; version: number }>('hcp__layout');
    await layouts.updateOne({ _id: 'store' }, { $set: { version: 99 } });

    const opening = connectMongoDb({ url: database.url, tables: TABLES });

    await expect(opening).rejects.toSatisfy((error) => isHcpError(error, 'store_unsupported'));
    await expect(opening).rejects.toThrow('layout 99');
    expect(await layouts.findOne({ _id: 'store' })).toEqual({ _id: 'store', version: 99 });
  });
});

describeWith('the native session of a MongoDB transaction', mongodb(), (server) => {
  it("lets the program's own writes commit and roll back with the store's", async () => {
    await using database = freshDatabase(server);
    await using store = await connectMongoDb({ url: database.url, tables: TABLES });
    const ledger = store.client.db().collection<{ _id: string }>('ledger');
    const record = (id: string, fails: boolean) =>
      store.transaction(async (tx) => {
        // What `native` is on this engine.
        const session = tx.native as ClientSession;
        await ledger.insertOne({ _id: id }, { session });
        await tx.write([{ insert: 'sessions', row: { id, version: 1, owner: null } }]);
        if (fails) throw new Error('on purpose');
      });

    await record('kept', false);
    await expect(record('rolled back', true)).rejects.toThrow('on purpose');

    expect(await ledger.find().toArray()).toEqual([{ _id: 'kept' }]);
    expect((await store.scan('sessions', 'key')).map((row) => row.id)).toEqual(['kept']);
  });
});
