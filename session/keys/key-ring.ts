import type { JWK } from 'jose';
import { signCompact, verifyCompact } from './compact-token.ts';
import { type RingKey, readKey } from './ring-key.ts';

/** The keys tokens are signed with and verified by. */
export interface KeyRing {
  /** Signs claims as a compact JWS; `typ` keeps a token of one kind from being used as another. */
  sign(claims: Readonly<Record<string, unknown>>, typ: string): Promise<string>;
  /** The claims of a token signed by a key of this ring. Does not judge times. Rejects with `token_invalid`. */
  verify(token: string, typ: string): Promise<Record<string, unknown>>;
  /** What others need to verify. HS256 keys have no public half and are left out. */
  publicKeys(): readonly JWK[];
  /** Adds a key and signs with it from now on; the older ones still verify. */
  rotate(key: JWK): Promise<void>;
  /** Forgets a key: what it has signed is refused from now on. Not the one that signs. */
  retire(kid: string): Promise<void>;
}

/** A ring of the given keys: the first signs, all verify. Rejects with `TypeError` for a key it cannot use. */
export async function createKeyRing(keys: readonly JWK[]): Promise<KeyRing> {
  const read = await Promise.all(keys.map(readKey));
  const [first] = read;
  if (first === undefined) throw new TypeError('A key ring needs at least one key');
  let signer = first;
  const byKid = new Map<string, RingKey>();
  for (const key of read) add(key);

  function add(key: RingKey): void {
    if (byKid.has(key.kid)) throw new TypeError(`Each key of a ring needs its own kid, but two are ${key.kid}`);
    byKid.set(key.kid, key);
  }

  return {
    sign: (claims, typ) => signCompact(signer, claims, typ),
    verify: (token, typ) => verifyCompact(token, byKid, typ),
    publicKeys: () => [...byKid.values()].flatMap(({ publicKey }) => (publicKey ? [{ ...publicKey }] : [])),
    async rotate(jwk) {
      const key = await readSigningKey(jwk);
      add(key);
      signer = key;
    },
    async retire(kid) {
      refuseToRetire(kid, [...byKid.keys()], signer.kid);
      byKid.delete(kid);
    },
  };
}

/** A key a ring can be rotated to. */
export async function readSigningKey(jwk: JWK): Promise<RingKey> {
  const key = await readKey(jwk);
  if (key.signing === undefined) throw new TypeError(`Key ${key.kid} has only its public half: it cannot sign`);
  return key;
}

/** Throws `TypeError` for a key that is not there (a slip would leave a leaked key in force) or is still needed. */
export function refuseToRetire(kid: string, kids: readonly string[], signer: string): void {
  if (!kids.includes(kid)) throw new TypeError('The ring has no key of this kid');
  if (kid === signer) throw new TypeError(`Key ${kid} signs: rotate to another one before it is retired`);
}
