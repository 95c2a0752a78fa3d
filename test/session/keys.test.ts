import { createHmac, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { inspect } from 'node:util';
import fc from 'fast-check';
import type { JWK } from 'jose';
import { describe, expect, it } from 'vitest';
import { createKeyRing, type KeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import { isHcpError } from '../../shared/errors.ts';

const KIND = 'hcp-test+jwt';
const edwards = { ...(await generateKey()), kid: 'ed' };
const secret = { ...(await generateKey('HS256')), kid: 'hs' };
const publicHalf: JWK = { kty: 'OKP', crv: 'Ed25519', x: String(edwards.x), kid: 'ed', alg: 'EdDSA' };

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const decoded = (text = '') => JSON.parse(Buffer.from(text, 'base64url').toString());
const hmac = (key: string | Buffer) => (input: string) => createHmac('sha256', key).update(input).digest('base64url');
const eddsa = (key: JWK) => (input: string) =>
  sign(null, Buffer.from(input), createPrivateKey({ key, format: 'jwk' })).toString('base64url');

/** A token by hand: any header, any signature. */
function token(header: object, signature: (input: string) => string, claims: unknown = { a: 1 }): string {
  const input = `${part(header)}.${part(claims)}`;
  return `${input}.${signature(input)}`;
}

/** Why it was refused. */
async function reasonOf(ring: KeyRing, hostile: string, kind = KIND): Promise<string | undefined> {
  const error: unknown = await ring.verify(hostile, kind).catch((refusal) => refusal);
  if (!isHcpError(error, 'token_invalid')) throw new Error('The token was not refused');
  expect([error.retryable, error.cause]).toEqual([false, undefined]);
  // Parts of fewer characters are found in any text.
  for (const secretText of [hostile, ...hostile.split('.'), String(edwards.d), String(secret.k)]) {
    if (secretText.length > 8) expect(inspect(error, { depth: null, showHidden: true })).not.toContain(secretText);
  }
  return error.reason;
}

const mistakeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'nothing was thrown',
    (error: unknown) => (error instanceof TypeError ? error.message : `no mistake: ${error}`),
  );

describe.each([
  ['EdDSA', edwards],
  ['HS256', secret],
] as const)('a key ring of %s', (alg, key) => {
  it('gives back the claims it signed, under a header of three members', async () => {
    const ring = await createKeyRing([key]);
    const claims = { sub: 'ålpha', n: 1.5, deep: { list: [1, null] } };
    const signed = await ring.sign(claims, KIND);
    expect(await ring.verify(signed, KIND)).toEqual(claims);
    expect(decoded(signed.split('.')[0])).toEqual({ alg, kid: key.kid, typ: KIND });
  });

  it('refuses a token in which any one character was changed', async () => {
    const ring = await createKeyRing([key]);
    const signed = await ring.sign({ sub: 'alpha', n: 1 }, KIND);
    const alphabet = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\u0000é'];
    await fc.assert(
      fc.asyncProperty(fc.nat(signed.length - 1), fc.constantFrom(...alphabet), async (at, character) => {
        fc.pre(signed[at] !== character);
        const changed = signed.slice(0, at) + character + signed.slice(at + 1);
        await expect(ring.verify(changed, KIND)).rejects.toMatchObject({ code: 'token_invalid' });
      }),
      { numRuns: 1000 },
    );
  });

  it('refuses a second spelling of the same bytes', async () => {
    const ring = await createKeyRing([key]);
    const signed = await ring.sign({ a: 1 }, KIND);
    const bytes = Buffer.from(signed.split('.')[2] ?? '', 'base64url');
    const twins = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
      .map((last) => signed.slice(0, -1) + last)
      .filter((twin) => twin !== signed && Buffer.from(twin.split('.')[2] ?? '', 'base64url').equals(bytes));
    expect(twins.length).toBeGreaterThan(0);
    for (const twin of [...twins, `${signed}=`, `${signed}\n`, ` ${signed}`]) {
      expect(await reasonOf(ring, twin)).toBe('malformed');
    }
  });

  it('refuses what was signed as another kind of token', async () => {
    const ring = await createKeyRing([key]);
    expect(await reasonOf(ring, await ring.sign({ a: 1 }, 'other+jwt'))).toBe('kind');
  });

  it('refuses a signature by another key of the same kid', async () => {
    const ring = await createKeyRing([key]);
    const other = await createKeyRing([{ ...(await generateKey(alg)), kid: key.kid }]);
    expect(await reasonOf(ring, await other.sign({ a: 1 }, KIND))).toBe('forged');
  });
});

describe('a key ring', () => {
  it('refuses a token without a signature, whatever it calls that', async () => {
    const ring = await createKeyRing([edwards, secret]);
    for (const alg of ['none', 'None', 'NONE', '']) {
      for (const kid of ['ed', 'hs']) {
        expect(
          await reasonOf(
            ring,
            token({ alg, kid, typ: KIND }, () => ''),
          ),
        ).toBe('forged');
      }
    }
    expect(
      await reasonOf(
        ring,
        token({ alg: 'none', typ: KIND }, () => ''),
      ),
    ).toBe('malformed');
    expect(
      await reasonOf(
        ring,
        token({ alg: 'EdDSA', kid: 'ed', typ: KIND }, () => ''),
      ),
    ).toBe('forged');
  });

  it('never takes the public key for a secret', async () => {
    const ring = await createKeyRing([edwards]);
    const exported = createPublicKey({ key: publicHalf, format: 'jwk' });
    const spellings = [
      Buffer.from(String(edwards.x), 'base64url'),
      String(edwards.x),
      JSON.stringify(publicHalf),
      exported.export({ type: 'spki', format: 'pem' }),
      exported.export({ type: 'spki', format: 'der' }),
    ];
    for (const spelling of spellings) {
      for (const alg of ['HS256', 'EdDSA']) {
        expect(await reasonOf(ring, token({ alg, kid: 'ed', typ: KIND }, hmac(spelling)))).toBe('forged');
      }
    }
  });

  it('uses a key for its own algorithm alone, also when the signature would hold', async () => {
    const ring = await createKeyRing([edwards, secret]);
    // Another name of the same algorithm.
    expect(await reasonOf(ring, token({ alg: 'Ed25519', kid: 'ed', typ: KIND }, eddsa(edwards)))).toBe('forged');
    const sha512 = (input: string) =>
      createHmac('sha512', Buffer.from(String(secret.k), 'base64url'))
        .update(input)
        .digest('base64url');
    expect(await reasonOf(ring, token({ alg: 'HS512', kid: 'hs', typ: KIND }, sha512))).toBe('forged');
    expect(await reasonOf(ring, token({ alg: 'EdDSA', kid: 'hs', typ: KIND }, eddsa(edwards)))).toBe('forged');
  });

  it('believes no header that brings a key or changes what is signed, even signed by itself', async () => {
    const ring = await createKeyRing([edwards]);
    const ours = { alg: 'EdDSA', kid: 'ed', typ: KIND };
    expect(await ring.verify(token(ours, eddsa(edwards)), KIND)).toEqual({ a: 1 });
    const attacker = await generateKey();
    const { d: _, ...jwk } = attacker;
    for (const member of [
      { jwk },
      { jku: 'https://attacker.example/keys' },
      { x5u: 'https://attacker.example/chain' },
      { x5c: ['MII'] },
      { crit: ['b64'], b64: false },
      { b64: false },
      { crit: [] },
      { zip: 'DEF' },
    ]) {
      for (const key of [edwards, attacker]) {
        expect(await reasonOf(ring, token({ ...ours, ...member }, eddsa(key)))).toBe('malformed');
      }
    }
  });

  it('refuses an unknown key, also one named like something every object has', async () => {
    const ring = await createKeyRing([edwards]);
    for (const kid of ['nobody', '', 'ED', 'constructor', '__proto__', 'toString']) {
      const header = JSON.parse(`{"alg":"EdDSA","kid":${JSON.stringify(kid)},"typ":"${KIND}"}`);
      expect(await reasonOf(ring, token(header, eddsa(edwards)))).toBe('unknown_key');
    }
  });

  it('refuses what has not the form of a token', async () => {
    const ring = await createKeyRing([edwards]);
    const signed = await ring.sign({ a: 1 }, KIND);
    const header = { alg: 'EdDSA', kid: 'ed', typ: KIND };
    const shapeless = ['', '.', '..', '...', 'a.b', 'not a token', `${signed}.`, `.${signed}`, `${signed}.${part({})}`];
    const headers = [[], null, 7, 'text', { ...header, kid: 1 }, { ...header, typ: null }, { alg: 'EdDSA' }];
    const notJson = Buffer.from('{"alg"').toString('base64url');
    for (const hostile of [
      ...shapeless,
      `${notJson}.${signed.split('.').slice(1).join('.')}`,
      ...headers.map((wrong) => token(wrong as object, eddsa(edwards))),
      ...[[], null, 7, 'text'].map((claims) => token(header, eddsa(edwards), claims)),
    ]) {
      expect(await reasonOf(ring, hostile)).toBe('malformed');
    }
    for (const value of [undefined, null, 7, {}, [signed], Buffer.from(signed)]) {
      await expect(ring.verify(value as string, KIND)).rejects.toMatchObject({ reason: 'malformed' });
    }
  });

  it('takes tokens of 8 KiB at most, and signs none it would not take', async () => {
    const ring = await createKeyRing([edwards]);
    const long = token({ alg: 'EdDSA', kid: 'ed', typ: KIND }, eddsa(edwards), { a: 'x'.repeat(8 * 1024) });
    expect(await reasonOf(ring, long)).toBe('malformed');
    expect(await mistakeOf(ring.sign({ a: 'x'.repeat(8 * 1024) }, KIND))).toContain('8192');
    const fitting = await ring.sign({ a: 'x'.repeat(5 * 1024) }, KIND);
    expect(await ring.verify(fitting, KIND)).toEqual({ a: 'x'.repeat(5 * 1024) });
  });

  it('of public keys verifies what the private ones signed, and refuses to sign', async () => {
    const ring = await createKeyRing([edwards, secret]);
    const reader = await createKeyRing(ring.publicKeys());
    expect(await reader.verify(await ring.sign({ a: 1 }, KIND), KIND)).toEqual({ a: 1 });
    expect(await mistakeOf(reader.sign({ a: 1 }, KIND))).toMatch(/public half.*cannot sign/);
    expect(await mistakeOf(reader.rotate({ ...publicHalf, kid: 'other' }))).toMatch(/public half.*cannot sign/);
  });

  it('publishes public halves only', async () => {
    const ring = await createKeyRing([secret, edwards]);
    expect(ring.publicKeys()).toEqual([{ ...publicHalf, use: 'sig' }]);
  });

  it('signs with the key it was rotated to, and still verifies by the older one until that is retired', async () => {
    const ring = await createKeyRing([edwards]);
    const old = await ring.sign({ n: 1 }, KIND);
    await ring.rotate(secret);
    const fresh = await ring.sign({ n: 2 }, KIND);
    expect(decoded(fresh.split('.')[0]).kid).toBe('hs');
    expect([await ring.verify(old, KIND), await ring.verify(fresh, KIND)]).toEqual([{ n: 1 }, { n: 2 }]);
    await ring.retire('ed');
    expect(await reasonOf(ring, old)).toBe('unknown_key');
    expect(await ring.verify(fresh, KIND)).toEqual({ n: 2 });
    expect(ring.publicKeys()).toEqual([]);
  });

  it('refuses to retire the key that signs, one it has not, and to have two of one kid', async () => {
    const ring = await createKeyRing([edwards, secret]);
    expect(await mistakeOf(ring.retire('ed'))).toMatch(/ed signs/);
    expect(await mistakeOf(ring.retire('nobody'))).toMatch(/no key/);
    expect(await mistakeOf(ring.rotate({ ...(await generateKey()), kid: 'hs' }))).toMatch(/own kid/);
    expect(await mistakeOf(createKeyRing([edwards, { ...secret, kid: 'ed' }]))).toMatch(/own kid/);
    expect(decoded((await ring.sign({}, KIND)).split('.')[0]).kid).toBe('ed');
  });

  it('refuses a key it cannot use in one sentence that does not show it', async () => {
    const other = await generateKey();
    const { kid: _, ...nameless } = edwards;
    const short = Buffer.alloc(31, 7).toString('base64url');
    const unusable: readonly unknown[] = [
      undefined,
      null,
      'key',
      nameless,
      { ...edwards, kid: '' },
      { ...edwards, kid: 'a b' },
      { ...edwards, kid: 'x'.repeat(129) },
      { ...edwards, kid: 7 },
      { ...edwards, alg: undefined },
      { ...edwards, alg: 'Ed25519' },
      { ...edwards, alg: 'none' },
      { ...edwards, alg: 'HS256' },
      { ...edwards, crv: 'X25519' },
      { ...edwards, crv: 'Ed448' },
      { ...edwards, x: other.x },
      { ...edwards, x: undefined },
      { ...edwards, d: 'AAAA' },
      { ...edwards, d: 7 },
      { ...secret, alg: 'HS512' },
      { ...secret, alg: 'EdDSA' },
      { ...secret, k: short },
      { ...secret, k: `${secret.k}=` },
      { ...secret, k: undefined },
      { ...secret, kty: 'OKP' },
      { kty: 'RSA', alg: 'RS256', kid: 'rsa', n: 'AQAB', e: 'AQAB' },
    ];
    for (const key of unusable) {
      const error: unknown = await createKeyRing([key as JWK]).catch((refusal) => refusal);
      expect(error, inspect(key)).toBeInstanceOf(TypeError);
      expect((error as TypeError).message).toMatch(/^[A-Z][^\n]{15,200}[^.\n]$/);
      const shown = inspect(error, { depth: null, showHidden: true });
      for (const material of [edwards.d, edwards.x, secret.k, short]) expect(shown).not.toContain(material);
    }
    expect(await mistakeOf(createKeyRing([]))).toMatch(/at least one key/);
  });

  it('shows no key to whoever prints it', async () => {
    const shown = inspect(await createKeyRing([edwards, secret]), { depth: null, showHidden: true });
    for (const material of [edwards.d, secret.k]) expect(shown).not.toContain(material);
  });

  it('is made of keys that are new each time', async () => {
    const made = await Promise.all([generateKey(), generateKey(), generateKey('HS256'), generateKey('HS256')]);
    expect(new Set(made.map(({ kid }) => kid)).size).toBe(4);
    expect(made.map(({ alg, kty, crv }) => [alg, kty, crv])).toEqual([
      ['EdDSA', 'OKP', 'Ed25519'],
      ['EdDSA', 'OKP', 'Ed25519'],
      ['HS256', 'oct', undefined],
      ['HS256', 'oct', undefined],
    ]);
    expect(Buffer.from(String(made[2]?.k), 'base64url').length).toBe(32);
    expect(await mistakeOf(generateKey('RS256' as 'HS256'))).toMatch(/EdDSA or HS256/);
  });
});
