import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { openStore } from '../../shared/store/open-store.ts';
import type { Store } from '../../shared/store/store.ts';
import { connectAmqp } from '../../shared/transport/amqp/index.ts';
import { connectSqlite } from '../../shared/transport/sqlite/index.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import type { Heal } from '../../testing/transport-contract/index.ts';
import { createVhost, freshDatabase, mongodb, rabbitmq, settleQueues } from './services/index.ts';

/** A transport and a store of the same kind of world, real ones. */
export interface Stack extends AsyncDisposable {
  readonly transportUrl: string;
  readonly storeUrl: string;
  connect(): Promise<Transport>;
  openStore(): Promise<Store>;
  /** The broker is gone at once; healing brings it back with what it had. */
  stopBroker(): Promise<Heal>;
}

interface StackKind {
  readonly name: string;
  readonly unavailable: string | undefined;
  start(): Promise<Stack>;
}

/** Where a callee must behave the same. */
function stackKinds(): readonly StackKind[] {
  const broker = rabbitmq();
  const database = mongodb();
  return [
    { name: 'sqlite transport + SQLite store', unavailable: undefined, start: startEmbedded },
    {
      name: 'RabbitMQ + MongoDB',
      unavailable:
        [broker, database].flatMap((server) => (server.available ? [] : [server.reason])).join('; ') || undefined,
      start: startDistributed,
    },
  ];
}

/** Runs a suite on every stack. `stack()` is for use inside the tests. */
export function describeOnStacks(name: string, body: (stack: () => Stack) => void): void {
  for (const kind of stackKinds()) {
    describe(`${name} (${kind.name})`, () => {
      const { unavailable } = kind;
      if (unavailable !== undefined) return it('needs its servers', ({ skip }) => skip(unavailable));
      let started: Stack | undefined;
      beforeAll(async () => {
        started = await kind.start();
      });
      afterAll(() => started?.[Symbol.asyncDispose]());
      body(() => {
        if (started === undefined) throw new Error('The stack did not start');
        return started;
      });
    });
  }
}

async function startEmbedded(): Promise<Stack> {
  const folder = mkdtempSync(join(tmpdir(), 'hcp-stack-'));
  const queues = join(folder, 'queues.db');
  const storeUrl = `sqlite:${join(folder, 'store.db')}`;
  return {
    transportUrl: `sqlite:${queues}`,
    storeUrl,
    connect: () => connectSqlite({ path: queues, pollMs: 2, leaseMs: 2000, patienceMs: 200 }),
    openStore: () => openStore(storeUrl),
    async stopBroker() {
      const database = new DatabaseSync(queues, { timeout: 10_000 });
      database.exec('BEGIN IMMEDIATE');
      return async () => {
        database.exec('ROLLBACK');
        database.close();
      };
    },
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startDistributed(): Promise<Stack> {
  const [broker, server] = [rabbitmq(), mongodb()];
  if (!broker.available || !server.available) throw new Error('The servers are missing');
  await using stack = new AsyncDisposableStack();
  const vhost = stack.use(await createVhost(broker));
  const database = stack.use(freshDatabase(server));
  const kept = stack.move();
  return {
    transportUrl: vhost.url,
    storeUrl: database.url,
    connect: () =>
      connectAmqp({ url: vhost.url, heartbeatSeconds: 2, reconnect: { firstDelayMs: 50, maxDelayMs: 500 } }),
    openStore: () => openStore(database.url),
    async stopBroker() {
      const { control } = broker;
      if (control === undefined) throw new Error('This broker is not ours to stop');
      await settleQueues(control);
      await control.kill();
      return control.start;
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
