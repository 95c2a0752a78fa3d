// A caller in a process of its own: `caller-main.ts <options as JSON>`. Writes every event into the ledger and a file.
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { createCaller } from '../../caller/index.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Store, StoreTransaction } from '../../shared/store/store.ts';
import { openTransport } from '../../shared/transport/open-transport.ts';
import { connectSqlite } from '../../shared/transport/sqlite/index.ts';
import type { CallerProcessOptions } from './caller-process.ts';
import { enter, LEDGER_TABLES } from './ledger.ts';

const { transportUrl, storeUrl, callerId, calleeId, file, submits, sessionIds, dies }: CallerProcessOptions =
  JSON.parse(process.argv[2] ?? '');

/** Dies once, on the spot. */
function die(): void {
  const mark = `${file}.died`;
  if (existsSync(mark)) return;
  writeFileSync(mark, '');
  process.kill(process.pid, 'SIGKILL');
}

/** A store whose process dies when a commit is through, before anybody hears of it. */
function mortal(inner: Store): Store {
  return {
    ...inner,
    async transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T> {
      lastHandled = 0;
      const result = await inner.transaction(work);
      tellCommitted();
      if (dies?.when === 'committed' && lastHandled >= dies.sequence) die();
      return result;
    },
  };
}

let lastHandled = 0;
let { promise: committed, resolve: tellCommitted } = Promise.withResolvers<void>();

/** Resolves when every event up to `session_closed` is in the ledger: the result comes before the last ones. */
async function closed(sessionId: string): Promise<void> {
  for (;;) {
    const next = committed;
    const row = await store.get('follows', [callerId, sessionId]);
    if (row?.final_state) return;
    await next;
    ({ promise: committed, resolve: tellCommitted } = Promise.withResolvers<void>());
  }
}

const store = await openStore(storeUrl, { tables: LEDGER_TABLES });
const path = /^sqlite:(.*)$/.exec(transportUrl)?.[1];
const transport = await (path === undefined
  ? openTransport(transportUrl)
  : connectSqlite({ path, pollMs: 2, leaseMs: 100 }));
const caller = createCaller({
  ...{ callerId, transport, store: mortal(store) },
  gapHoldMs: 60_000,
  onEvent: async (event, tx) => {
    await enter(event, tx);
    lastHandled = event.payload.sequence;
    appendFileSync(file, `${event.session_id} ${lastHandled}\n`);
    await new Promise((resolve) => setImmediate(resolve)); // some time in which it can be killed
    if (dies?.when === 'handled' && lastHandled >= dies.sequence) die();
  },
});
await caller.start();
console.log('ready');
const task = { capability: 'test.task', intent: 'Do it', inputs: {} };
for (let count = 0; count < submits; count++) {
  const { sessionId } = await caller.submit(task, { calleeId });
  console.log('session', sessionId);
}
const sessions = await Promise.all(sessionIds.map((sessionId) => caller.session(sessionId)));
await Promise.all(sessions.map((session) => session?.result()));
for (const sessionId of sessionIds) await closed(sessionId);
if (sessions.length > 0) {
  // Its acks are on their way out, too.
  await caller.close();
  console.log('done');
}
