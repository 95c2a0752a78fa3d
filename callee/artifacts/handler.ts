import { type FileHandle, open } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { KeyRing } from '../../session/keys/key-ring.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { isHcpError } from '../../shared/errors.ts';
import { parseHarnessId } from '../../shared/ids.ts';
import { type Logger, silentLogger } from '../../shared/logger.ts';
import { methodsOption, refuseUnknownOptions } from '../../shared/option-checks.ts';
import { type ArtifactGrant, readGrant } from './grant.ts';
import { COMMON_HEADERS, contentHeaders, etagOf, isHeldByClient } from './headers.ts';
import { type ByteRange, requestedRange } from './requested-range.ts';
import type { ArtifactAddress } from './uri.ts';

export interface ArtifactHandlerOptions {
  readonly calleeId: string;
  /** The keys of the callee, or others with the same public ones. */
  readonly keys: Pick<KeyRing, 'verify'>;
  /**
   * The path of an artifact's file; `undefined` when it is gone. The name is a plain file name: joined to a folder of
   * the session it cannot lead out of it.
   */
  readonly locate: (artifact: ArtifactAddress) => Promise<string | undefined>;
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** @default logs nothing */
  readonly logger?: Logger;
}

/** Answers one request. Never rejects. */
export type ArtifactHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

type Settings = Required<ArtifactHandlerOptions>;

// As an object, so that the compiler misses none.
const OPTION_NAMES = Object.keys({
  calleeId: 0,
  keys: 0,
  locate: 0,
  clock: 0,
  logger: 0,
} satisfies Record<keyof ArtifactHandlerOptions, 0>);

/**
 * Serves artifacts under the URLs that `hcp.artifact` gives out, on a server of `node:https` (or of `node:http` behind
 * one that ends TLS) and under any path: the token is the last part of it. Whoever has no right to a file learns only
 * that there is none. Throws `TypeError` for options that cannot work.
 */
export function createArtifactHandler(options: ArtifactHandlerOptions): ArtifactHandler {
  const settings = resolveOptions(options);
  return async (request, response) => {
    try {
      await serve(settings, request, response);
    } catch (error) {
      settings.logger.error({ err: error }, 'An artifact could not be served');
      if (response.headersSent) response.destroy();
      else refuse(response, isHcpError(error) && error.retryable ? 503 : 500);
    }
  };
}

function resolveOptions(options: ArtifactHandlerOptions): Settings {
  refuseUnknownOptions(options, OPTION_NAMES);
  if (typeof options.locate !== 'function') throw new TypeError('locate must be a function that answers a path');
  return {
    calleeId: parseHarnessId(options.calleeId, 'calleeId'),
    keys: methodsOption(options.keys, 'keys', ['verify']),
    locate: options.locate,
    clock: methodsOption(options.clock ?? systemClock, 'clock', ['now']),
    logger: methodsOption(options.logger ?? silentLogger, 'logger', ['debug', 'info', 'warn', 'error']),
  };
}

async function serve(settings: Settings, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { calleeId, keys, locate, clock, logger } = settings;
  if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(response, 405, { Allow: 'GET, HEAD' });
  const grant = await readGrant(keys, calleeId, tokenOf(request));
  if (grant === undefined) return refuse(response, 404);
  if (clock.now() >= grant.expiresAt * 1000) return refuse(response, 410);
  const { address, callerId: caller_id, sizeBytes } = grant;
  const about = { session_id: address.sessionId, caller_id, artifact: address.name };
  const path = await locate(address);
  await using file = path === undefined ? undefined : await openFile(path);
  const size = await sizeOf(file);
  if (file === undefined || size === undefined) {
    logger.warn(about, 'The file of an artifact is gone');
    return refuse(response, 404);
  }
  if (sizeBytes !== undefined && size !== sizeBytes) {
    logger.error({ ...about, size, promised: sizeBytes }, 'The file of an artifact has another size than was told');
    return refuse(response, 410);
  }
  const range = answer(request, response, grant, size);
  if (range === undefined) return;
  try {
    await pipeline(read(file, range), response);
  } catch (error) {
    // The client left, or the file shrank: the connection is gone, so nobody takes a part for the whole.
    logger.warn({ ...about, err: error }, 'An artifact was not sent to its end');
  }
}

/** Says what comes, and which bytes are still to be sent. */
function answer(
  { method, headers }: IncomingMessage,
  response: ServerResponse,
  { address, type, checksum }: ArtifactGrant,
  size: number,
): ByteRange | undefined {
  const etag = etagOf(checksum);
  const tag = etag === undefined ? {} : { ETag: etag };
  if (isHeldByClient(headers, etag)) return refuse(response, 304, tag);
  // A range is a matter of GET alone.
  const range = method === 'GET' ? requestedRange(headers, { size, etag }) : 'whole';
  if (range === 'unsatisfiable') return refuse(response, 416, { 'Content-Range': `bytes */${size}` });
  const { start, end } = range === 'whole' ? { start: 0, end: size - 1 } : range;
  response.writeHead(range === 'whole' ? 200 : 206, {
    ...COMMON_HEADERS,
    ...contentHeaders(address.name, type),
    ...tag,
    'Content-Length': end - start + 1,
    ...(range !== 'whole' && { 'Content-Range': `bytes ${start}-${end}/${size}` }),
  });
  if (method === 'GET') return { start, end };
  response.end();
  return undefined;
}

function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): undefined {
  response.writeHead(status, { ...COMMON_HEADERS, ...headers, ...(status !== 304 && { 'Content-Length': 0 }) }).end();
}

function tokenOf({ url = '' }: IncomingMessage): string {
  const [path = ''] = url.split('?');
  return path.slice(path.lastIndexOf('/') + 1);
}

async function openFile(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // of Node's own making
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Of a file only: a folder can be opened, too. */
async function sizeOf(file: FileHandle | undefined): Promise<number | undefined> {
  const stats = await file?.stat();
  return stats?.isFile() ? stats.size : undefined;
}

const CHUNK = 64 * 1024;

/** These bytes and no others. Throws when the file ends before them. */
async function* read(file: FileHandle, { start, end }: ByteRange): AsyncGenerator<Uint8Array> {
  for (let position = start; position <= end; ) {
    const length = Math.min(CHUNK, end - position + 1);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, position);
    if (bytesRead === 0) throw new Error('The file became shorter while it was sent');
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
