import type { KeyRing } from '../../session/keys/key-ring.ts';
import { isHcpError } from '../../shared/errors.ts';
import { type ArtifactAddress, artifactUri, parseArtifactUri } from './uri.ts';

/** Keeps a session token, signed by the same keys, from being taken for the right to a file. */
const TOKEN_TYPE = 'hcp-artifact+jwt';

/** The right to fetch one artifact, for a while: whoever has its token may. */
export interface ArtifactGrant {
  readonly address: ArtifactAddress;
  readonly callerId: string;
  /** Seconds since 1970, as in the token. */
  readonly expiresAt: number;
  /** As the result of the session told them. */
  readonly type: string;
  readonly sizeBytes: number | undefined;
  readonly checksum: string | undefined;
}

export function signGrant(keys: Pick<KeyRing, 'sign'>, grant: ArtifactGrant, now: number): Promise<string> {
  const { address, callerId, expiresAt, type, sizeBytes, checksum } = grant;
  const claims = {
    iss: address.calleeId,
    sub: callerId,
    uri: artifactUri(address.calleeId, address.sessionId, address.name),
    iat: Math.floor(now / 1000),
    exp: expiresAt,
    type,
    ...(sizeBytes !== undefined && { size_bytes: sizeBytes }),
    ...(checksum !== undefined && { checksum }),
  };
  return keys.sign(claims, TOKEN_TYPE);
}

/** What a token grants, expired or not; `undefined` when this callee did not sign it, or for something else. */
export async function readGrant(
  keys: Pick<KeyRing, 'verify'>,
  calleeId: string,
  token: string,
): Promise<ArtifactGrant | undefined> {
  const claims = await keys.verify(token, TOKEN_TYPE).catch((error: unknown) => {
    if (isHcpError(error, 'token_invalid')) return undefined;
    throw error;
  });
  const address = parseArtifactUri(claims?.uri);
  if (claims === undefined || address?.calleeId !== calleeId || claims.iss !== calleeId) return undefined;
  const { sub, exp, type, size_bytes: sizeBytes, checksum } = claims;
  // The keys may be shared: what has another shape was signed by somebody else.
  if (typeof sub !== 'string' || typeof exp !== 'number' || typeof type !== 'string') return undefined;
  return {
    address,
    callerId: sub,
    expiresAt: exp,
    type,
    sizeBytes: typeof sizeBytes === 'number' ? sizeBytes : undefined,
    checksum: typeof checksum === 'string' ? checksum : undefined,
  };
}
