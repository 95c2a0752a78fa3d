import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Artifact } from '../../schemas/types.ts';
import { isMediaType } from './media-type.ts';
import { artifactUri } from './uri.ts';

export type DescribeFileOptions = {
  /** Where the file is now. The caller never sees it. */
  readonly path: string;
  /** What the caller knows it by: a file name, the only one of its kind in the session. */
  readonly name: string;
  /** MIME type. */
  readonly type: string;
  readonly signal?: AbortSignal;
} & (
  | {
      readonly calleeId: string;
      /** Whose artifact it is: `run.sessionId`. */
      readonly sessionId: string;
    }
  | {
      /** Where it can be fetched, if not by `hcp.artifact`. */
      readonly uri: string;
    }
);

/**
 * The entry of a file in the artifacts of a result, with its size and checksum. Reads the file once, from end to end;
 * rejects with Node's error when it cannot be read, with `TypeError` for a name or type that cannot be told.
 */
export async function describeFile(options: DescribeFileOptions): Promise<Artifact> {
  const { path, name, type, signal } = options;
  if (!isMediaType(type)) throw new TypeError('type must be a MIME type, as text/csv');
  const uri = 'uri' in options ? options.uri : artifactUri(options.calleeId, options.sessionId, name);
  const hash = createHash('sha256');
  let size = 0;
  signal?.throwIfAborted();
  for await (const chunk of createReadStream(path)) {
    signal?.throwIfAborted();
    hash.update(chunk);
    size += chunk.length;
  }
  return { name, type, uri, size_bytes: size, checksum: `sha256:${hash.digest('hex')}` };
}
