import { isHarnessId, isUuidV4, parseHarnessId, parseSessionId } from '../../shared/ids.ts';

/** Which artifact of which session of which callee. */
export interface ArtifactAddress {
  readonly calleeId: string;
  readonly sessionId: string;
  readonly name: string;
}

/** What a URI path may hold (RFC 3986, pchar): nothing here is white space, a control character or a slash. */
const URI = /^hcp:\/\/([A-Za-z0-9_-]+)\/([0-9A-Fa-f-]+)\/([A-Za-z0-9._~!$&'()*+,;=:@%-]+)$/;
/** Three characters for each byte of the longest name, two ids and what stands between. */
const LONGEST_URI = 1024;
/** In bytes: more than a file system takes. */
const LONGEST_NAME = 255;
/** Slashes of both kinds, control characters, line ends, and halves of characters. */
const UNFIT = /[/\\\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u;

/** The address of an artifact of a session: `hcp://{callee_id}/{session_id}/{name}`. Throws `TypeError`. */
export function artifactUri(calleeId: string, sessionId: string, name: string): string {
  if (!isArtifactName(name)) {
    throw new TypeError(
      `name must be a file name of at most ${LONGEST_NAME} bytes, without slashes and control characters`,
    );
  }
  return `hcp://${parseHarnessId(calleeId, 'calleeId')}/${parseSessionId(sessionId)}/${encodeURIComponent(name)}`;
}

/**
 * Reads what {@link artifactUri} writes; `undefined` for anything else. The name is safe as the name of a file in a
 * folder: however it was encoded, it leads nowhere else.
 */
export function parseArtifactUri(text: unknown): ArtifactAddress | undefined {
  if (typeof text !== 'string' || text.length > LONGEST_URI) return undefined;
  const [, calleeId, sessionId, encoded = ''] = URI.exec(text) ?? [];
  const name = decode(encoded);
  if (!isHarnessId(calleeId) || !isUuidV4(sessionId) || !isArtifactName(name)) return undefined;
  return { calleeId, sessionId: sessionId.toLowerCase(), name };
}

function isArtifactName(name: unknown): name is string {
  if (typeof name !== 'string' || name === '' || name === '.' || name === '..') return false;
  return Buffer.byteLength(name) <= LONGEST_NAME && !UNFIT.test(name);
}

/** Once only: what still looks encoded afterwards is part of the name. */
function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined; // an odd percent sign, or no UTF-8
  }
}
