/**
 * An orchestrator that keeps books, to be killed at any moment: `caller.ts <transport> <books> <batches> <sessions>`.
 * Without sessions it submits the batches and says which sessions they became; with them it follows these.
 */
import { openTransport } from 'hcp-sdk';
import { createCaller } from 'hcp-sdk/caller';
import { connectSqlite } from 'hcp-sdk/transport/sqlite';
import { openBooks } from './books.ts';
import type { Movement } from './movements.ts';

process.once('disconnect', () => process.exit()); // whoever started us is gone
const [transportUrl = '', booksUrl = '', batches = '[]', sessions = '[]'] = process.argv.slice(2);
// What a killed process had in hand comes back after its lease; a broker notices at once.
await using transport = transportUrl.startsWith('sqlite:')
  ? await connectSqlite({ path: transportUrl.slice('sqlite:'.length), leaseMs: 500 })
  : await openTransport(transportUrl);
await using books = await openBooks(booksUrl);
await using caller = createCaller({
  ...{ callerId: 'treasurer', transport, store: books.store },
  async onEvent({ session_id, payload }, tx) {
    if (payload.event_type !== 'intermediate_result') return;
    const { sequence, data } = payload;
    await books.enter({ session_id, sequence, ...(data.data as Movement) }, tx); // the bank tells nothing else
    process.send?.({ entered: sequence }); // outside of the transaction: may be told more often than it is done
  },
});

const ids: string[] = JSON.parse(sessions);
if (ids.length === 0) {
  for (const inputs of JSON.parse(batches)) {
    const task = { capability: 'bank.settle', intent: `Settle batch ${inputs.batch}`, inputs };
    ids.push(String((await caller.submit(task, { calleeId: 'bank' })).sessionId));
  }
  process.send?.({ sessions: ids });
}
// Also those of an earlier life. A result comes after the events before it are handled.
const followed = await Promise.all(ids.map((id) => caller.session(id)));
const outcomes = await Promise.all(followed.map((session) => session?.result()));
process.send?.({ outcomes });
process.disconnect?.();
