import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { connectMongoDb } from '../../../../shared/store/mongodb/index.ts';
import { openStore } from '../../../../shared/store/open-store.ts';
import type { Tables } from '../../../../shared/store/tables.ts';
import { describeWith, freshDatabase, mongodb } from '../../../support/services/index.ts';

const TABLES: Tables = { rows: { columns: { id: 'text', value: 'integer' }, key: ['id'], indexes: {} } };

describeWith('MongoDB store and the transactions of killed processes', mongodb(), (server) => {
  // The server itself would keep the row for a minute, twice what this test may take.
  it.each([
    ['a single write', [{ put: 'rows', row: { id: 'contested', value: 2 } }]],
    [
      'a commit of several',
      [
        { put: 'rows', row: { id: 'contested', value: 2 } },
        { put: 'rows', row: { id: 'other', value: 3 } },
      ],
    ],
  ])('%s does not wait for one that nobody can end any more', async (_, writes) => {
    await using database = freshDatabase(server);
    await using store = await openStore(database.url, { tables: TABLES });
    await store.commit([{ put: 'rows', row: { id: 'contested', value: 0 } }]);
    const script = fileURLToPath(new URL('../support/open-transaction.ts', import.meta.url));
    const victim = spawn(process.execPath, [script, database.url, JSON.stringify(TABLES)]);
    await once(victim.stdout, 'data');
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    expect(await store.commit(writes)).toBe('committed');
    expect(await store.get('rows', ['contested'])).toEqual({ id: 'contested', value: 2 });
  });

  it('leaves alone the transaction of a process that is alive, however slow', async () => {
    await using database = freshDatabase(server);
    await using slow = await openStore(database.url, { tables: TABLES });
    await using rival = await connectMongoDb({ url: database.url, tables: TABLES, options: { monitorCommands: true } });
    await slow.commit([{ put: 'rows', row: { id: 'contested', value: 0 } }]);
    let runs = 0;
    const { promise: wrote, resolve: tellWrote } = Promise.withResolvers<void>();
    const { promise: proceed, resolve: tellProceed } = Promise.withResolvers<void>();
    const first = slow.transaction(async (tx) => {
      runs++;
      await tx.write([{ put: 'rows', row: { id: 'contested', value: 1 } }]);
      tellWrote();
      await proceed;
    });
    await wrote;
    const { promise: lookedTwice, resolve: tellLookedTwice } = Promise.withResolvers<void>();
    let looks = 0;
    rival.client.on('commandSucceeded', ({ commandName }) => {
      if (commandName === 'aggregate' && ++looks === 2) tellLookedTwice();
    });
    const second = rival.commit([{ put: 'rows', row: { id: 'contested', value: 2 } }]);
    await lookedTwice;
    tellProceed();
    await first;
    expect([await second, runs]).toEqual(['committed', 1]);
  });
});
