import { randomBytes, randomUUID } from 'node:crypto';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';

export type KeyAlgorithm = 'EdDSA' | 'HS256';

/** A key ready for use. */
export interface RingKey {
  readonly kid: string;
  readonly alg: KeyAlgorithm;
  readonly verifying: CryptoKey | Uint8Array;
  /** Missing where only the public half is known. */
  readonly signing: CryptoKey | Uint8Array | undefined;
  /** Missing where there is no public half. */
  readonly publicKey: JWK | undefined;
}

const KID = /^[\x21-\x7e]{1,128}$/;
const SECRET_BYTES = 32;

/** Throws `TypeError` for a key that tokens cannot be signed with or verified by; the text never shows key material. */
export async function readKey(jwk: JWK): Promise<RingKey> {
  const { kid, alg } = Object(jwk) as JWK;
  if (typeof kid !== 'string' || !KID.test(kid)) {
    throw new TypeError('Each key must have a kid of 1 to 128 visible ASCII characters');
  }
  if (alg === 'EdDSA') return readEdwards(jwk, kid);
  if (alg === 'HS256') return readSecret(jwk, kid);
  throw new TypeError(`The alg of key ${kid} must be EdDSA or HS256`);
}

async function readEdwards({ kty, crv, x, d }: JWK, kid: string): Promise<RingKey> {
  const alg = 'EdDSA';
  // Only these members are imported: what else a JWK says of itself (key_ops, ext) is not for it to decide.
  const half = { kty: 'OKP', crv: 'Ed25519', x: String(x) } as const;
  try {
    if (kty !== half.kty || crv !== half.crv) throw new TypeError('Another kind of key');
    const verifying = await importJWK(half, alg);
    // Also refuses a private half that does not belong to the public one.
    const signing = d === undefined ? undefined : await importJWK({ ...half, d }, alg);
    return { kid, alg, verifying, signing, publicKey: { ...half, kid, alg, use: 'sig' } };
  } catch {
    // Without its cause, which may quote the key.
    throw new TypeError(`Key ${kid} must be an Ed25519 key (kty OKP) to be used for EdDSA`);
  }
}

function readSecret({ kty, k }: JWK, kid: string): RingKey {
  const secret = typeof k === 'string' ? Buffer.from(k, 'base64url') : Buffer.alloc(0);
  if (kty !== 'oct' || secret.length < SECRET_BYTES || secret.toString('base64url') !== k) {
    throw new TypeError(`Key ${kid} must be a secret of at least ${SECRET_BYTES} bytes (kty oct) to be used for HS256`);
  }
  return { kid, alg: 'HS256', verifying: secret, signing: secret, publicKey: undefined };
}

/** A new private key with a `kid` of its own. */
export async function generateKey(alg: KeyAlgorithm = 'EdDSA'): Promise<JWK> {
  const kid = randomUUID();
  switch (alg) {
    case 'HS256':
      return { kty: 'oct', k: randomBytes(SECRET_BYTES).toString('base64url'), kid, alg };
    case 'EdDSA': {
      const { privateKey } = await generateKeyPair(alg, { extractable: true });
      return { ...(await exportJWK(privateKey)), kid, alg };
    }
    default:
      throw new TypeError('alg must be EdDSA or HS256');
  }
}
