import { MongoClient, type MongoClientOptions, MongoError, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { HcpError } from '../../errors.ts';
import { scrubUrls } from '../../logger.ts';
import { isLoopback } from '../../loopback.ts';
import { toStoreError } from './errors.ts';

/** An absent server is reported after this long, and a silent one is given up. */
const PATIENCE_MS = 5_000;

export interface ConnectionOptions {
  readonly url: string;
  readonly options: MongoClientOptions;
  readonly allowInsecure: boolean;
}

/** A client that is not connected yet. Throws a `TypeError` for settings that would break a promise. */
export function createClient({ url, options, allowInsecure }: ConnectionOptions): MongoClient {
  const client = parse(url, {
    serverSelectionTimeoutMS: PATIENCE_MS,
    connectTimeoutMS: PATIENCE_MS,
    appName: 'hcp-sdk',
    ...options,
    // A write whose answer is lost is repeated under the same number, and the server answers again.
    retryWrites: true,
  });
  const { hosts, tls, srvHost, writeConcern } = client.options;
  if (writeConcern?.w !== undefined && writeConcern.w !== 'majority') {
    throw new TypeError(`w=${writeConcern.w} is weaker than the store promises: leave it out, or say w=majority`);
  }
  const isRemote =
    srvHost !== undefined || !hosts.every((host) => host.socketPath !== undefined || isLoopback(host.host ?? ''));
  if (isRemote && !tls && !allowInsecure) {
    throw new TypeError('A MongoDB server on another machine needs tls=true in its URL, or allowInsecure: true');
  }
  return client;
}

function parse(url: string, options: MongoClientOptions): MongoClient {
  try {
    return new MongoClient(url, options);
  } catch (error) {
    // No cause: the driver may quote the URL with its password.
    throw new TypeError(`The MongoDB URL or options are wrong: ${scrubUrls((error as Error).message)}`);
  }
}

/** Connects and makes sure that the server can do transactions. */
export async function connect(client: MongoClient): Promise<void> {
  try {
    await client.connect();
    const hello = await client.db('admin').command({ hello: 1 });
    if (hello.setName === undefined && hello.msg !== 'isdbgrid') throw notReplicaSet();
  } catch (error) {
    if (isNameError(error)) {
      throw new HcpError('store_unavailable', `MongoDB failed: ${scrubUrls(error.message)}`, { cause: error });
    }
    throw toStoreError(hasNoMember(error) ? notReplicaSet(error) : error);
  }
}

/** What the look-up of a mongodb+srv: name throws is Node's own, not the driver's. */
function isNameError(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof MongoError) && 'syscall' in error;
}

function notReplicaSet(cause?: unknown): HcpError {
  return new HcpError(
    'store_unsupported',
    'MongoDB must run as a replica set (one node is enough): start mongod with --replSet and run rs.initiate()',
    // A member that waits for its initiation, or a set of another name, can become the right one without us.
    cause === undefined ? {} : { cause, retryable: true },
  );
}

/** Whether servers answered, and none of them is in the replica set: the driver itself only tells that it gave up. */
function hasNoMember(error: unknown): boolean {
  if (!(error instanceof MongoServerSelectionError) || error.reason === undefined) return false;
  // The driver drops servers that turn out not to belong to the named set; a ghost was never initiated.
  return Array.from(error.reason.servers.values()).every((server) => server.type === 'RSGhost');
}

/** Index errors that mean "it exists, but not like this": other options, other columns, or rows that contradict it. */
const OTHER_INDEX = new Set([85, 86, 11_000]);

export function isOtherIndex(error: unknown): error is MongoServerError {
  return error instanceof MongoServerError && typeof error.code === 'number' && OTHER_INDEX.has(error.code);
}
