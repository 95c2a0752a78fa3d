// A process that leaves a transaction open: `open-transaction.ts <store URL> <tables as JSON>`. Says "open" when it has written.
import { openStore } from '../../../../shared/store/open-store.ts';

const [, , url = '', tables = ''] = process.argv;
const store = await openStore(url, { tables: JSON.parse(tables) });
await store.transaction(async (tx) => {
  await tx.write([{ put: 'rows', row: { id: 'contested', value: 1 } }]);
  console.log('open');
  await new Promise(() => setInterval(() => {}, 2 ** 30));
});
