// A caller of this SDK for the conformance kit: docs/conformance.md says what each variable and line means.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createCaller, type EventHandler, type Session } from '../caller/index.ts';
import { isHcpError } from '../shared/errors.ts';
import { openStore } from '../shared/store/open-store.ts';
import type { Store, StoreTransaction } from '../shared/store/store.ts';
import { hcpTables, type Tables } from '../shared/store/tables.ts';
import { openTransport } from '../shared/transport/open-transport.ts';
import { connectSqlite } from '../shared/transport/sqlite/index.ts';

const { env } = process;
const file = env.HCP_CONFORMANCE_FILE ?? '';
const told = (): string[] => (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []);
const tell = (line: object) => appendFileSync(file, `${JSON.stringify(line)}\n`);

/** What a killed process had in hand comes back soon, so that the kit need not wait. */
const LEASE_MS = 500;

/** What was handled is written down with the cursor, and told once that is committed: one line per event, whatever happens. */
const SEEN: Tables = {
  conformance_seen: {
    columns: { caller_id: 'text', session_id: 'text', sequence: 'integer', event_type: 'text' },
    key: ['caller_id', 'session_id', 'sequence'],
    indexes: {},
  },
};

const callerId = env.HCP_CALLER_ID ?? '';
const effects = new WeakMap<StoreTransaction, (() => void)[]>();
const store = await openStore(env.HCP_STORE_URL ?? `sqlite:${file}.db`, { tables: { ...hcpTables, ...SEEN } });
const caller = createCaller({
  ...{ callerId, transport: await connect(), store: withEffects(store), onEvent: see() },
  submitTimeoutMs: Number(env.HCP_SUBMIT_TIMEOUT_MS),
  submitTries: Number(env.HCP_SUBMIT_TRIES),
  gapHoldMs: Number(env.HCP_GAP_HOLD_MS),
  graceMs: Number(env.HCP_GRACE_MS),
});

await tellWhatWasNotTold();
await caller.start();
await Promise.all(Array.from({ length: Number(env.HCP_SUBMITS) }, submit));

function connect() {
  if (env.HCP_AMQP_URL !== undefined) return openTransport(env.HCP_AMQP_URL);
  return connectSqlite({ path: env.HCP_DB ?? './hcp.db', leaseMs: LEASE_MS });
}

/** A store that does what a transaction wanted done when it is committed. */
function withEffects(inner: Store): Store {
  return {
    ...inner,
    async transaction<T>(work: (tx: StoreTransaction) => Promise<T>): Promise<T> {
      let wanted: (() => void)[] = [];
      const result = await inner.transaction((tx) => {
        wanted = []; // of an attempt that was rolled back nothing is left
        effects.set(tx, wanted);
        return work(tx);
      });
      for (const effect of wanted) effect();
      return result;
    },
  };
}

function see(): EventHandler {
  return async ({ session_id, payload }, tx) => {
    const { sequence, event_type, data } = payload;
    const stage = event_type === 'progress' ? data.stage : undefined;
    if (stage === 'hold' && !told().some((line) => line.includes('"holding":true'))) {
      tell({ session_id, sequence, holding: true });
      return new Promise(() => {}); // until it is killed
    }
    await tx.write([{ insert: 'conformance_seen', row: { caller_id: callerId, session_id, sequence, event_type } }]);
    effects.get(tx)?.push(() => {
      tell({ session_id, sequence, event_type });
      if (stage === 'abort') void abort(session_id);
    });
  };
}

/** Committed by an earlier life, which did not get to tell it. */
async function tellWhatWasNotTold(): Promise<void> {
  const lines = new Set(told());
  for (const row of await store.scan('conformance_seen', 'key', { where: [callerId], limit: 1000 })) {
    const { session_id, sequence, event_type } = row;
    const line = { session_id, sequence, event_type };
    if (!lines.has(JSON.stringify(line))) tell(line);
  }
}

async function abort(sessionId: string): Promise<void> {
  const session = await caller.session(sessionId);
  await session?.abort('The kit asked for it').catch((error: unknown) => fail(error, sessionId));
}

async function submit(): Promise<void> {
  let session: Session | undefined;
  try {
    const task = { capability: 'hcp.conformance', intent: 'Follow the script', inputs: { script: [] } };
    session = await caller.submit(task, { calleeId: env.HCP_CALLEE_ID ?? '' });
    const outcome = await session.result();
    const code =
      outcome.status === 'failed' ? outcome.errorCode : outcome.status === 'rejected' ? outcome.reasonCode : undefined;
    tell({ session_id: session.sessionId ?? null, outcome: outcome.status, code });
  } catch (error) {
    fail(error, session?.sessionId);
  }
}

function fail(error: unknown, sessionId: string | undefined): void {
  tell({ session_id: sessionId ?? null, outcome: 'error', code: isHcpError(error) ? error.code : String(error) });
}
