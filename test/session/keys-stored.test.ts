import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import { openStoredKeyRing } from '../../session/keys/stored-keys.ts';
import { HcpError } from '../../shared/errors.ts';
import { createMemoryStore, MemoryData } from '../../shared/store/memory/index.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Store } from '../../shared/store/store.ts';
import { hcpTables } from '../../shared/store/tables.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { disposableFolder } from '../shared/store/support/disposable-folder.ts';
import { describeWith, freshDatabase, mongodb } from '../support/services/index.ts';

const KIND = 'hcp-test+jwt';
const kidOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid;
const kidNow = async (ring: KeyRing) => kidOf(await ring.sign({}, KIND));
const named = async (kid: string) => ({ ...(await generateKey()), kid });

/** A token of a key nobody has. */
const invented = (kid: string) =>
  [{ alg: 'EdDSA', kid, typ: KIND }, {}].map((p) => Buffer.from(JSON.stringify(p)).toString('base64url')).join('.') +
  `.${Buffer.alloc(64).toString('base64url')}`;

/** The store, and how often it was read. */
function counting(inner: Store): { readonly store: Store; readonly reads: () => number } {
  let reads = 0;
  const scan: Store['scan'] = (...args) => {
    reads++;
    return inner.scan(...args);
  };
  return { store: { ...inner, scan }, reads: () => reads };
}

let callees = 0;
const newCallee = () => `lab-${++callees}`;

/** `open` opens the same data each time. */
function storedKeys(open: () => Promise<Store>): void {
  it('are made once, and shared by instances that start at the same time', async () => {
    await using one = await open();
    await using two = await open();
    const [clock, calleeId] = [new ManualClock(), newCallee()];
    const rings = await Promise.all([one, two, one, two].map((store) => openStoredKeyRing(store, calleeId, { clock })));
    const tokens = await Promise.all(rings.map((ring, n) => ring.sign({ n }, KIND)));
    for (const ring of rings) {
      const claims = await Promise.all(tokens.map((token) => ring.verify(token, KIND)));
      expect(claims).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }]);
      expect(ring.publicKeys()).toEqual(rings[0]?.publicKeys());
    }
    const rows = await one.scan('keys', 'key', { where: [calleeId] });
    expect(rows.map(({ kid, created_at }) => [kid, created_at])).toEqual([['k1', clock.now()]]);
  });

  it('are there again in a later life, and are not those of another callee', async () => {
    const [clock, calleeId] = [new ManualClock(), newCallee()];
    await using store = await open();
    const token = await (await openStoredKeyRing(store, calleeId, { clock })).sign({ n: 1 }, KIND);
    clock.advance(1e9);
    await using later = await open();
    expect(await (await openStoredKeyRing(later, calleeId, { clock })).verify(token, KIND)).toEqual({ n: 1 });
    const stranger = await openStoredKeyRing(later, newCallee(), { clock });
    await expect(stranger.verify(token, KIND)).rejects.toMatchObject({ code: 'token_invalid', reason: 'forged' });
  });

  it('are rotated without a break: what one instance signs with, the other verifies at once', async () => {
    const [clock, calleeId] = [new ManualClock(), newCallee()];
    await using one = await open();
    await using two = await open();
    const ring = await openStoredKeyRing(one, calleeId, { clock });
    const other = await openStoredKeyRing(two, calleeId, { clock });
    const old = await ring.sign({ n: 1 }, KIND);
    await ring.rotate(await named('second'));
    const fresh = await ring.sign({ n: 2 }, KIND);
    expect(kidOf(fresh)).toBe('second');
    // Twice at once: the second waits for what the first has asked the store.
    const claims = await Promise.all([fresh, fresh, old].map((token) => other.verify(token, KIND)));
    expect(claims).toEqual([{ n: 2 }, { n: 2 }, { n: 1 }]);
    expect(await kidNow(other)).toBe('second');
    expect(await ring.verify(old, KIND)).toEqual({ n: 1 });
  });

  it('that are retired verify nothing: here at once, elsewhere within a minute, and after a restart', async () => {
    const [clock, calleeId] = [new ManualClock(), newCallee()];
    await using one = await open();
    await using two = await open();
    const ring = await openStoredKeyRing(one, calleeId, { clock });
    const other = await openStoredKeyRing(two, calleeId, { clock });
    const old = await ring.sign({}, KIND);
    await ring.rotate(await named('second'));
    await ring.retire('k1');
    const refusal = { code: 'token_invalid', reason: 'unknown_key' };
    await expect(ring.verify(old, KIND)).rejects.toMatchObject(refusal);
    clock.advance(60_000);
    await expect(other.verify(old, KIND)).rejects.toMatchObject(refusal);
    const later = await openStoredKeyRing(two, calleeId, { clock });
    await expect(later.verify(old, KIND)).rejects.toMatchObject(refusal);
    expect(later.publicKeys().map(({ kid }) => kid)).toEqual(['second']);
  });

  it('sign by age, whatever the clock of the instance that rotates', async () => {
    const [clock, behind, calleeId] = [new ManualClock(), new ManualClock(0), newCallee()];
    await using store = await open();
    const ring = await openStoredKeyRing(store, calleeId, { clock });
    const slow = await openStoredKeyRing(store, calleeId, { clock: behind });
    await slow.rotate(await named('a-by-the-slow'));
    expect([await kidNow(slow), await kidNow(await openStoredKeyRing(store, calleeId, { clock }))]).toEqual([
      'a-by-the-slow',
      'a-by-the-slow',
    ]);
    await ring.rotate(await named('0-by-the-other'));
    behind.advance(60_000);
    expect([await kidNow(slow), await kidNow(ring)]).toEqual(['0-by-the-other', '0-by-the-other']);
  });

  it('of one age agree on who signs', async () => {
    const [clock, calleeId] = [new ManualClock(), newCallee()];
    await using one = await open();
    await using two = await open();
    const rings = await Promise.all([one, two].map((store) => openStoredKeyRing(store, calleeId, { clock })));
    for (const kid of ['z', 'b']) {
      const row = { callee_id: calleeId, kid, created_at: clock.now() + 5, jwk: JSON.stringify(await named(kid)) };
      expect(await one.commit([{ insert: 'keys', row }])).toBe('committed');
    }
    clock.advance(60_000);
    expect(await Promise.all(rings.map(kidNow))).toEqual(['z', 'z']);
  });

  it('are all kept when two instances rotate at once, and both sign with the same one then', async () => {
    const [clock, calleeId] = [new ManualClock(), newCallee()];
    await using one = await open();
    await using two = await open();
    const rings = await Promise.all([one, two].map((store) => openStoredKeyRing(store, calleeId, { clock })));
    const keys = [await named('left'), await named('right')];
    await Promise.all(rings.map(async (ring, n) => ring.rotate(keys[n] ?? {})));
    clock.advance(60_000);
    const [mine, others] = await Promise.all(rings.map(kidNow));
    expect(mine).toBe(others);
    expect(rings[0]?.publicKeys().map(({ kid }) => kid)).toHaveLength(3);
  });

  it('are neither retired while they sign, nor unknown, nor given a name twice', async () => {
    const [clock, calleeId] = [new ManualClock(), newCallee()];
    await using one = await open();
    await using two = await open();
    const ring = await openStoredKeyRing(one, calleeId, { clock });
    const other = await openStoredKeyRing(two, calleeId, { clock });
    await other.rotate(await named('second'));
    // The first ring has not heard of it: it looks before it judges.
    await expect(ring.retire('second')).rejects.toThrow(/second signs/);
    await expect(ring.retire('nobody')).rejects.toThrow(/no key/);
    await expect(ring.rotate(await named('second'))).rejects.toThrow(/own kid/);
    const { d: _, ...publicHalf } = await named('third');
    await expect(ring.rotate(publicHalf)).rejects.toThrow(/public half/);
    await ring.retire('k1');
    expect(ring.publicKeys().map(({ kid }) => kid)).toEqual(['second']);
  });
}

describe('stored keys (memory)', () => {
  const data = new MemoryData();
  storedKeys(async () => createMemoryStore({ tables: hcpTables, data }));
});

describe('stored keys (SQLite)', () => {
  const folder = disposableFolder();
  afterAll(() => folder[Symbol.dispose]());
  storedKeys(() => openStore(`sqlite:${join(folder.path, 'store.db')}`));
});

describeWith('stored keys (MongoDB)', mongodb(), (server) => {
  const database = freshDatabase(server);
  beforeAll(async () => (await openStore(database.url)).close());
  afterAll(() => database[Symbol.asyncDispose]());
  storedKeys(() => openStore(database.url));
});

describe('stored keys', () => {
  it('are read again for an unknown key once a second at most, however many are invented', async () => {
    const clock = new ManualClock();
    await using inner = await openStore('memory:');
    const { store, reads } = counting(inner);
    const ring = await openStoredKeyRing(store, 'lab', { clock });
    const flood = async (count: number) => {
      const tokens = Array.from({ length: count }, (_, n) => invented(`invented-${n}`));
      const answers = await Promise.allSettled(tokens.map((token) => ring.verify(token, KIND)));
      expect(answers.map(({ status }) => status)).toEqual(tokens.map(() => 'rejected'));
    };
    const before = reads();
    await flood(50);
    await flood(50);
    expect(reads()).toBe(before + 1);
    clock.advance(999);
    await flood(1);
    expect(reads()).toBe(before + 1);
    clock.advance(1);
    await flood(50);
    expect(reads()).toBe(before + 2);
  });

  it('are not read for tokens of known keys, but once a minute', async () => {
    const clock = new ManualClock();
    await using inner = await openStore('memory:');
    const { store, reads } = counting(inner);
    const ring = await openStoredKeyRing(store, 'lab', { clock });
    const before = reads();
    const token = await ring.sign({}, KIND);
    for (let n = 0; n < 20; n++) await ring.verify(token, KIND);
    clock.advance(59_999);
    await ring.verify(token, KIND);
    expect(reads()).toBe(before);
    clock.advance(1);
    await Promise.all([ring.verify(token, KIND), ring.verify(token, KIND), ring.sign({}, KIND)]);
    clock.advance(59_999);
    await ring.verify(token, KIND);
    expect(reads()).toBe(before + 1);
  });

  it('are read again after the clock was set back', async () => {
    let now = 1e12;
    const clock = { setTimeout: () => 0, clearTimeout() {}, now: () => now };
    await using store = await openStore('memory:');
    const ring = await openStoredKeyRing(store, 'lab', { clock });
    const other = await openStoredKeyRing(store, 'lab', { clock });
    await other.rotate(await named('second'));
    now -= 1e9;
    expect(await kidNow(ring)).toBe('second');
  });

  it('fail with the store, and are there again when it is', async () => {
    const clock = new ManualClock();
    await using inner = await openStore('memory:');
    let isDown = false;
    const scan: Store['scan'] = async (...args) => {
      if (isDown) throw new HcpError('store_unavailable', 'The store did not answer');
      return inner.scan(...args);
    };
    const ring = await openStoredKeyRing({ ...inner, scan }, 'lab', { clock });
    const token = await ring.sign({ n: 1 }, KIND);
    isDown = true;
    expect(await ring.verify(token, KIND)).toEqual({ n: 1 });
    clock.advance(60_000);
    await expect(ring.verify(token, KIND)).rejects.toMatchObject({ code: 'store_unavailable' });
    isDown = false;
    expect(await ring.verify(token, KIND)).toEqual({ n: 1 });
  });

  it('that are damaged are told of without being shown', async () => {
    const clock = new ManualClock();
    await using store = await openStore('memory:');
    await openStoredKeyRing(store, 'lab', { clock });
    const row = await store.get('keys', ['lab', 'k1']);
    const { d } = JSON.parse(String(row?.jwk));
    for (const jwk of [`${d}`, String(row?.jwk).slice(0, -1), String(row?.jwk).replace('EdDSA', 'HS256')]) {
      await store.commit([{ patch: 'keys', key: ['lab', 'k1'], set: { jwk } }]);
      const error: unknown = await openStoredKeyRing(store, 'lab', { clock }).catch((refusal) => refusal);
      expect(error).toBeInstanceOf(TypeError);
      const shown = inspect(error, { depth: null, showHidden: true });
      expect(shown).toContain('k1');
      expect(shown).not.toContain(d.slice(0, 8));
    }
  });
});
