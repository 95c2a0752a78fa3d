import { CompactSign, compactVerify } from 'jose';
import { HcpError } from '../../shared/errors.ts';
import type { RingKey } from './ring-key.ts';

/** Why a token is refused. */
export type TokenFault =
  | 'malformed'
  | 'unknown_key'
  | 'forged'
  | 'kind'
  | 'foreign'
  | 'replayed'
  | 'widened'
  | 'early'
  | 'expired';

/** Never has a cause: what a parser complains about may quote the token. */
export function tokenInvalid(reason: TokenFault, message: string): HcpError<'token_invalid'> {
  return new HcpError('token_invalid', message, { reason });
}

const LONGEST = 8 * 1024;

/** Claims signed as a compact JWS whose header says `alg`, `kid`, `typ` and nothing else. */
export async function signCompact(
  { kid, alg, signing }: RingKey,
  claims: Readonly<Record<string, unknown>>,
  typ: string,
): Promise<string> {
  if (signing === undefined) throw new TypeError(`Key ${kid} has only its public half: it verifies, but cannot sign`);
  const token = await new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg, kid, typ })
    .sign(signing);
  if (token.length > LONGEST) throw new TypeError(`The claims make a token of more than ${LONGEST} characters`);
  return token;
}

/** The claims of a token signed by the key it names. Rejects with `token_invalid`. */
export async function verifyCompact(
  token: string,
  keys: ReadonlyMap<string, RingKey>,
  typ: string,
): Promise<Record<string, unknown>> {
  const header = readHeader(token);
  const key = keys.get(header.kid);
  if (key === undefined) throw tokenInvalid('unknown_key', 'The token names a key that is not in the ring');
  // The key decides, never the token: with its own choice, a public key would serve as a secret, or none be needed.
  if (header.alg !== key.alg) throw tokenInvalid('forged', 'The token names another algorithm than that of its key');
  const payload = await verifiedPayload(token, key);
  if (header.typ !== typ) throw tokenInvalid('kind', 'The token is one of another kind');
  return parseObject(payload);
}

async function verifiedPayload(token: string, { verifying, alg }: RingKey): Promise<Uint8Array> {
  try {
    return (await compactVerify(token, verifying, { algorithms: [alg] })).payload;
  } catch {
    throw tokenInvalid('forged', 'The signature of the token is wrong');
  }
}

interface Header {
  readonly alg: string;
  readonly kid: string;
  readonly typ: string;
}

function readHeader(token: unknown): Header {
  if (typeof token !== 'string' || token.length > LONGEST) {
    throw tokenInvalid('malformed', `A token is a text of at most ${LONGEST} characters`);
  }
  const parts = token.split('.');
  if (parts.length !== 3 || !parts.every(isCanonical)) {
    throw tokenInvalid('malformed', 'A token is three parts in canonical base64url');
  }
  const { alg, kid, typ, ...others } = parseObject(Buffer.from(parts[0] ?? '', 'base64url'));
  // Another member could bring a key (jwk, jku, x5u), or change what is signed (crit, b64).
  if ([alg, kid, typ].some((member) => typeof member !== 'string') || Object.keys(others).length > 0) {
    throw tokenInvalid('malformed', 'The header of a token has alg, kid and typ, nothing else');
  }
  // Just checked: all three are texts.
  return { alg, kid, typ } as Header;
}

/** Two spellings of one token would pass for two tokens. */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part;
}

function parseObject(bytes: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString());
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Told below, for both.
  }
  throw tokenInvalid('malformed', 'The header and the claims of a token are JSON objects');
}
