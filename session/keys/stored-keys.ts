import type { JWK } from 'jose';
import type { Clock } from '../../shared/clock.ts';
import { isHcpError } from '../../shared/errors.ts';
import type { Row, Store, Write } from '../../shared/store/store.ts';
import { createKeyRing, type KeyRing, readSigningKey, refuseToRetire } from './key-ring.ts';
import { generateKey } from './ring-key.ts';

/** Fixed, so that of two instances starting at once one finds the place taken. */
const FIRST_KID = 'k1';
/** Until when an instance may not have heard that another one has rotated or retired a key. */
const FRESH_MS = 60_000;
/** Whoever sends tokens with invented kids must not cause a read for each. */
const UNKNOWN_KEY_MS = 1000;

interface Snapshot {
  readonly ring: KeyRing;
  /** Newest first: the order of who signs. */
  readonly rows: readonly Row[];
}

/**
 * The keys of a callee that was given none: made at its first start and kept in the store, so that all its instances and
 * later lives share them. The newest signs. A key another instance has rotated to is found when it is first met, a
 * retired one is known everywhere within a minute; so `sign` and `verify` may reject with what the store rejects with.
 */
export async function openStoredKeyRing(
  store: Store,
  calleeId: string,
  { clock }: { readonly clock: Clock },
): Promise<KeyRing> {
  if ((await readRows(store, calleeId)).length === 0) {
    const first = { ...(await generateKey()), kid: FIRST_KID };
    // A conflict is as good: another instance was faster, and its key is read below.
    await store.commit([insertKey(calleeId, first, clock.now())]);
  }
  let latest = await readSnapshot(store, calleeId);
  let readAt = clock.now();
  let reading: Promise<void> | undefined;
  /** When an unknown key last was the reason to read. */
  let soughtAt = Number.NEGATIVE_INFINITY;

  const isWithin = (ms: number, since: number): boolean => {
    const age = clock.now() - since;
    // Below zero when the clock was set back.
    return age >= 0 && age < ms;
  };

  function read(): Promise<void> {
    reading ??= readOnce().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  async function readOnce(): Promise<void> {
    const startedAt = clock.now();
    latest = await readSnapshot(store, calleeId);
    readAt = startedAt;
  }

  /** Sees at least what is committed now: a read under way may have begun before. */
  async function readAfresh(): Promise<void> {
    await reading?.catch(() => {});
    await read();
  }

  async function current(): Promise<KeyRing> {
    if (!isWithin(FRESH_MS, readAt)) await read();
    return latest.ring;
  }

  return {
    sign: async (claims, typ) => (await current()).sign(claims, typ),
    async verify(token, typ) {
      try {
        return await (await current()).verify(token, typ);
      } catch (error) {
        const isUnknown = isHcpError(error, 'token_invalid') && error.reason === 'unknown_key';
        if (!isUnknown || (reading === undefined && isWithin(UNKNOWN_KEY_MS, soughtAt))) throw error;
      }
      soughtAt = clock.now();
      await read();
      return latest.ring.verify(token, typ);
    },
    publicKeys: () => latest.ring.publicKeys(),
    async rotate(jwk) {
      const { kid } = await readSigningKey(jwk);
      await readAfresh();
      // Later than the newest, also by a clock that is behind: otherwise it would not sign.
      const createdAt = Math.max(clock.now(), Number(latest.rows[0]?.created_at) + 1);
      const answer = await store.commit([insertKey(calleeId, jwk, createdAt)]);
      if (answer !== 'committed') throw new TypeError(`Each key of a ring needs its own kid, but two are ${kid}`);
      await readAfresh();
    },
    async retire(kid) {
      await readAfresh();
      const kids = latest.rows.map((row) => String(row.kid));
      refuseToRetire(kid, kids, kids[0] ?? '');
      await store.commit([{ delete: 'keys', key: [calleeId, kid] }]);
      await readAfresh();
    },
  };
}

function insertKey(calleeId: string, jwk: JWK, createdAt: number): Write {
  const row = { callee_id: calleeId, kid: String(jwk.kid), created_at: createdAt, jwk: JSON.stringify(jwk) };
  return { insert: 'keys', row };
}

async function readSnapshot(store: Store, calleeId: string): Promise<Snapshot> {
  const rows = await readRows(store, calleeId);
  return { rows, ring: await createKeyRing(rows.map(parseKey)) };
}

function readRows(store: Store, calleeId: string): Promise<readonly Row[]> {
  return store.scan('keys', 'by_age', { where: [calleeId], order: 'descending', limit: 1000 });
}

function parseKey({ kid, jwk }: Row): JWK {
  try {
    return JSON.parse(String(jwk));
  } catch {
    // Without its cause, which quotes what it could not parse.
    throw new TypeError(`The stored key ${kid} is damaged: it is no JSON`);
  }
}
