import { join } from 'node:path';
import { DryMongoBinary, MongoBinary } from 'mongodb-memory-server-core';
import { cacheFolder } from './cache.ts';
import type { MongodbKind, Started } from './description.ts';
import { findProgram, freePorts, launch, type ServerProcess, untilReady } from './processes.ts';
import { initiateReplicaSet, probeMongod, probeMongodb } from './readiness.ts';
import { createWorkspace, type Workspace } from './workspace.ts';

/** The 8.0 line has long-term support. */
const DOWNLOAD_VERSION = '8.0.12';
const DOWNLOAD_SITE = 'https://fastdl.mongodb.org';

/** A mongod and what must stand around it. */
export interface MongodProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Starts the `mongod` on the PATH. */
export async function startLocalMongodb(kind: MongodbKind): Promise<Started> {
  const command = findProgram('mongod');
  if (command === undefined) throw new Error('mongod is not on the PATH');
  return startMongod(kind, (workspace) => onUnix(command, workspace));
}

/** Starts a mongod from the cache of mongodb-memory-server, which downloads it where the network allows. */
export async function startDownloadedMongodb(kind: MongodbKind): Promise<Started> {
  const options = { version: DOWNLOAD_VERSION, downloadDir: join(cacheFolder(), 'mongodb-binaries') };
  const cached = await DryMongoBinary.locateBinary(options);
  if (cached === undefined) {
    // The downloader retries for a long time where the network is closed.
    const site = process.env.MONGOMS_DOWNLOAD_MIRROR ?? DOWNLOAD_SITE;
    await fetch(site, { method: 'HEAD', signal: AbortSignal.timeout(3_000) }).catch((cause: unknown) => {
      throw new Error(`${site} cannot be reached`, { cause });
    });
  }
  const command = cached ?? (await MongoBinary.getPath(options));
  return startMongod(kind, (workspace) => onUnix(command, workspace));
}

/** Starts one mongod. */
export async function startMongod(
  kind: MongodbKind,
  program: (workspace: Workspace) => MongodProgram,
): Promise<Started> {
  const [port] = await freePorts(1);
  if (port === undefined) throw new Error('No free port');
  const workspace = createWorkspace('mongodb');
  try {
    const { command, args, env } = program(workspace);
    const server: ServerProcess = {
      name: 'mongodb',
      command,
      args: [
        ...args,
        ...(kind === 'standalone' ? [] : ['--replSet', 'hcp']),
        ...['--bind_ip', '127.0.0.1', '--port', String(port)],
        ...['--dbpath', workspace.subfolder('data')],
        // Many short-lived databases: mongod's own choice of half the memory would be a pity.
        ...['--wiredTigerCacheSizeGB', '0.5', '--oplogSize', '128'],
        // Wine has no performance counters: mongod would stop after a minute of looking for them.
        ...['--setParameter', 'diagnosticDataCollectionEnabled=false'],
        // For failCommand.
        ...['--setParameter', 'enableTestCommands=1'],
      ],
      env,
      // Under Wine a path without a drive letter is one of the current drive, and / is on Z:.
      cwd: '/',
      folder: workspace.folder,
      port,
    };
    const address = `127.0.0.1:${port}`;
    const alone = `mongodb://${address}/`;
    const url = kind === 'replica set' ? `${alone}?replicaSet=hcp` : alone;
    launch(server);
    let version = await untilReady(server, 90_000, () => probeMongod(alone));
    if (kind === 'replica set') {
      await untilReady(server, 90_000, () => initiateReplicaSet(alone, 'hcp', address));
      version = await untilReady(server, 30_000, () => probeMongodb(url));
    }
    return { url, version, handle: { kind: 'process', server }, stop: async () => workspace.close() };
  } catch (error) {
    workspace.close();
    throw error;
  }
}

function onUnix(command: string, workspace: Workspace): MongodProgram {
  return { command, args: ['--unixSocketPrefix', workspace.folder], env: {} };
}
