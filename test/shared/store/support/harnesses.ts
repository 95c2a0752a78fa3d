import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { MongoClient } from 'mongodb';
import { createMemoryStore, MemoryData } from '../../../../shared/store/memory/index.ts';
import { connectMongoDb } from '../../../../shared/store/mongodb/index.ts';
import { openSqliteStore } from '../../../../shared/store/sqlite/index.ts';
import type { Store } from '../../../../shared/store/store.ts';
import type { OtherProcessProgram, StoreHarness } from '../../../../testing/store-contract/index.ts';
import { disposableFolder } from './disposable-folder.ts';
import { type LossyProxy, startLossyProxy } from './lossy-proxy.ts';

/** A harness, and what is left of it when the tests are done. */
export type DisposableHarness = StoreHarness & AsyncDisposable;

export function memoryHarness(): DisposableHarness {
  const data = new MemoryData();
  return {
    adapter: 'memory',
    open: async (tables) => createMemoryStore({ tables, data }),
    loseNextAcknowledgement: undefined,
    inOtherProcess: undefined,
    async [Symbol.asyncDispose]() {},
  };
}

export function sqliteHarness(): DisposableHarness {
  const folder = disposableFolder();
  const path = () => join(folder.path, 'hcp.db');
  return {
    adapter: 'sqlite',
    open: (tables) => openSqliteStore({ path: path(), tables }),
    loseNextAcknowledgement: failAfterNextCommit,
    inOtherProcess: (program) => increment(`sqlite:${path()}`, program),
    async [Symbol.asyncDispose]() {
      folder[Symbol.dispose]();
    },
  };
}

/** `url` names the database. The stores go through a proxy that can lose answers. */
export function mongodbHarness(url: string): DisposableHarness {
  let proxy: Promise<LossyProxy> | undefined;
  let asked = 0;
  const throughProxy = () => {
    proxy ??= primaryOf(url).then(([host, port]) => startLossyProxy(host, port));
    return proxy;
  };
  return {
    adapter: 'mongodb',
    open: async (tables) => connectMongoDb({ url: proxiedUrl(url, await throughProxy()), tables }),
    loseNextAcknowledgement: async () => {
      asked++;
      (await throughProxy()).loseAcknowledgements(1);
    },
    inOtherProcess: (program) => increment(url, program),
    async [Symbol.asyncDispose]() {
      await using used = await proxy;
      // A case about a lost answer proves nothing when none was lost.
      if (used !== undefined && used.lost !== asked) throw new Error(`${used.lost} of ${asked} answers were lost`);
    },
  };
}

export function proxiedUrl(url: string, proxy: LossyProxy): string {
  const [, credentials = '', database = '', query = ''] =
    /^[^/]+\/\/([^/@]*@)?[^/?]*\/?([^?]*)\??(.*)$/.exec(url) ?? [];
  const options = new URLSearchParams(query);
  options.delete('replicaSet');
  options.set('directConnection', 'true');
  return `mongodb://${credentials}127.0.0.1:${proxy.port}/${database}?${options}`;
}

export async function primaryOf(url: string): Promise<[host: string, port: number]> {
  const client = new MongoClient(url);
  try {
    const { primary } = await client.db('admin').command({ hello: 1 });
    const { hostname, port } = new URL(`tcp://${primary}`);
    return [hostname, Number(port)];
  } finally {
    await client.close();
  }
}

/** The disk reports an error after the commit has reached it: the one way to lose an answer within a process. */
async function failAfterNextCommit(store: Store): Promise<void> {
  const database = await store.transaction(async (tx) => tx.native);
  if (!(database instanceof DatabaseSync)) throw new TypeError('Not an SQLite store');
  const exec = database.exec.bind(database);
  database.exec = (sql) => {
    exec(sql);
    if (sql !== 'COMMIT') return;
    database.exec = exec;
    throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 1034 });
  };
}

async function increment(url: string, program: OtherProcessProgram): Promise<void> {
  const script = fileURLToPath(new URL('increment.ts', import.meta.url));
  await promisify(execFile)(process.execPath, [script, url, JSON.stringify(program)]);
}
