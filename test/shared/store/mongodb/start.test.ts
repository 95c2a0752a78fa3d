import { getServers, setServers } from 'node:dns';
import { MongoClient, type MongoClientOptions } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HcpError, isHcpError } from '../../../../shared/errors.ts';
import { createClient } from '../../../../shared/store/mongodb/connection.ts';
import { connectMongoDb } from '../../../../shared/store/mongodb/index.ts';
import { startUnfitMongodb } from '../../../support/services/index.ts';
import { freePorts } from '../../../support/services/processes.ts';

const REPLICA_SET =
  'MongoDB must run as a replica set (one node is enough): start mongod with --replSet and run rs.initiate()';
const PASSWORD = 'hunter2';

/** Checks the settings and connects to nobody. */
async function settings(url: string, options: MongoClientOptions = {}, allowInsecure = false): Promise<MongoClient> {
  await using client = createClient({ url, options, allowInsecure });
  return client;
}

describe('the settings of a MongoDB store', () => {
  it.each([
    ['w=1 in the URL', 'mongodb://127.0.0.1/?w=1', {}],
    ['w=0 in the URL', 'mongodb://127.0.0.1/?w=0', {}],
    ['w: 1 in the options', 'mongodb://127.0.0.1/', { w: 1 }],
    ['a write concern of 1', 'mongodb://127.0.0.1/', { writeConcern: { w: 1 } }],
  ] as const)('refuse %s', async (_what, url, options) => {
    await expect(settings(url, options)).rejects.toThrow(/w=[01] is weaker than the store promises/);
  });

  it('take w=majority, and repeat lost writes whatever the URL says', async () => {
    const client = await settings('mongodb://127.0.0.1/?w=majority&retryWrites=false');
    expect(client.options.retryWrites).toBe(true);
  });

  it.each([
    'mongodb://db.example.com/',
    'mongodb://192.0.2.1/',
    'mongodb://127.0.0.1,db.example.com/',
    'mongodb://127.example.com/',
    'mongodb://localhost.example.com/',
    'mongodb://[2001:db8::1]/',
    'mongodb+srv://db.example.com/?tls=false',
  ])('refuse %s, which would be read on the way', async (url) => {
    await expect(settings(url)).rejects.toThrow(/needs tls=true in its URL, or allowInsecure: true/);
    await expect(settings(url, {}, true)).resolves.toBeInstanceOf(MongoClient);
  });

  it.each([
    'mongodb://127.0.0.1/',
    'mongodb://127.8.9.1:27018/',
    'mongodb://localhost/',
    'mongodb://[::1]/',
    'mongodb://%2Ftmp%2Fmongodb.sock/',
    'mongodb://db.example.com/?tls=true',
    'mongodb+srv://db.example.com/',
  ])('take %s', async (url) => {
    await expect(settings(url)).resolves.toBeInstanceOf(MongoClient);
  });

  it.each([
    `mongodb://user:${PASSWORD}@127.0.0.1/?maxPoolSize=many`,
    `mongodb://user:${PASSWORD}@127.0.0.1:notaport/`,
    `mongodb://user:${PASSWORD}@/`,
    `mongodb://user:a/b@${PASSWORD}@127.0.0.1/`,
    `mongodb://user:${PASSWORD}%@127.0.0.1/`,
  ])('are named wrong without a word of the password', async (url) => {
    const error = await settings(url).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(String((error as TypeError).message)).not.toContain(PASSWORD);
    expect((error as TypeError).cause).toBeUndefined();
  });
});

describe('a MongoDB that is not there', () => {
  it('is reported as unavailable, without the password', async () => {
    const [port] = await freePorts(1);
    const url = `mongodb://user:${PASSWORD}@127.0.0.1:${port}/`;
    const opening = connectMongoDb({ url, options: { serverSelectionTimeoutMS: 200 } });
    await expect(opening).rejects.toSatisfy((error) => isHcpError(error, 'store_unavailable') && error.retryable);
    await expect(opening).rejects.not.toThrow(PASSWORD);
  });
});

describe('a MongoDB whose name cannot be looked up', () => {
  const servers = getServers();
  beforeAll(async () => {
    // Nobody listens there, and nothing leaves this machine.
    const [port] = await freePorts(1);
    setServers([`127.0.0.1:${port}`]);
  });
  afterAll(() => setServers(servers));

  it('is reported as unavailable, without the password', async () => {
    const opening = connectMongoDb({ url: `mongodb+srv://user:${PASSWORD}@db.example.com/` });
    await expect(opening).rejects.toSatisfy((error) => isHcpError(error, 'store_unavailable') && error.retryable);
    await expect(opening).rejects.not.toThrow(PASSWORD);
  });
});

describe('a MongoDB that is no replica set', () => {
  it.each(['standalone', 'replica set without initiation'] as const)(
    'is refused in one sentence: %s',
    { timeout: 120_000 },
    async (kind) => {
      await using services = await startUnfitMongodb(kind);
      const server = services.mongodb;
      if (!server.available) throw new Error(server.reason);
      for (const query of ['', '?replicaSet=hcp', '?directConnection=true']) {
        const opening = connectMongoDb({ url: `${server.url}${query}`, options: { serverSelectionTimeoutMS: 1_000 } });
        const error: unknown = await opening.catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(HcpError);
        expect(error).toMatchObject({ code: 'store_unsupported', message: REPLICA_SET });
      }
    },
  );
});
