import { createHash } from 'node:crypto';
import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import {
  checkToken,
  describeToken,
  type ExpectedToken,
  isSameToken,
  issueToken,
  type TokenGrant,
} from '../../session/token.ts';
import { isHcpError } from '../../shared/errors.ts';
import { createLogger } from '../../shared/logger.ts';
import { schemaFault } from '../../shared/messages/validators.ts';
import { verifies } from '../support/verifies.ts';

const KIND = 'hcp-session+jwt';
const NOW = Date.UTC(2025, 0, 15, 8, 30, 1, 234);
const GRANT: TokenGrant = {
  calleeId: 'lab',
  callerId: 'alpha',
  sessionId: '3fa85f64-5717-4562-b3fc-2c963f66afa6',
  capability: 'heat',
  version: '1.2.0',
  riskLevel: 'R3',
  dataClassification: 'T2',
  maxDurationMs: 14_400_000,
  abortTimeoutMs: 300_000,
  safetyEnvelope: { parameters: { temperature: { max: 400, unit: '°C' } }, prohibited_actions: ['open_chamber'] },
  issuedAt: NOW,
  expiresAt: NOW + 3_600_001,
};

const key = { ...(await generateKey()), kid: 'k1' };
const ring = await createKeyRing([key]);
const issued = await issueToken(ring, GRANT);
const expected: ExpectedToken = { ...GRANT, token: issued };

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

/** A token that is ours by its signature, with these claims changed. */
const signedWith = (changes: object) => ring.sign({ ...claimsOf(issued), ...changes }, KIND);

/** Why it is refused. The text must not repeat any of it. */
async function reasonOf(token: string, record: ExpectedToken = expected, now = NOW): Promise<string | undefined> {
  const error: unknown = await checkToken(ring, token, record, now).catch((refusal) => refusal);
  if (!isHcpError(error, 'token_invalid')) throw new Error(`The token was not refused: ${error}`);
  const shown = inspect(error, { depth: null, showHidden: true });
  for (const text of [token, ...token.split('.'), record.token, String(key.d)]) {
    if (text.length > 8) expect(shown).not.toContain(text);
  }
  return error.reason;
}

describe('a session token', () => {
  verifies('HCP-307', 'is bound to session, caller, risk, data class, limits and envelope, and to nothing else', () => {
    expect(claimsOf(issued)).toEqual({
      iss: 'lab',
      sub: 'alpha',
      sid: GRANT.sessionId,
      jti: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/),
      iat: 1_736_929_801.234,
      exp: 1_736_933_401.235,
      cap: 'heat@1.2.0',
      risk: 'R3',
      data: 'T2',
      lim: { max_duration: 'PT4H', abort_timeout: 'PT5M' },
      env: createHash('sha256')
        .update('{"parameters":{"temperature":{"max":400,"unit":"°C"}},"prohibited_actions":["open_chamber"]}')
        .digest('hex'),
    });
  });

  verifies('HCP-307', 'never outlives the max duration', async () => {
    const longest = { ...GRANT, expiresAt: NOW + GRANT.maxDurationMs };
    const token = await issueToken(ring, longest);
    await checkToken(ring, token, { ...expected, token }, longest.expiresAt - 1);
    for (const expiresAt of [longest.expiresAt + 1, NOW, NOW - 1, Number.NaN, Infinity]) {
      await expect(issueToken(ring, { ...GRANT, expiresAt })).rejects.toThrow(TypeError);
    }
    const exp = (longest.expiresAt + 1) / 1000;
    const forever = await signedWith({ exp });
    expect(await reasonOf(forever, { ...expected, token: forever })).toBe('widened');
  });

  it('is another one each time', async () => {
    expect(await issueToken(ring, GRANT)).not.toBe(issued);
  });

  verifies('HCP-308', 'is good from the millisecond of its issue to the one before its end', async () => {
    for (const now of [NOW, GRANT.expiresAt - 1]) {
      expect(await checkToken(ring, issued, expected, now)).toEqual(claimsOf(issued));
    }
    await checkToken(ring, issued, expected, NOW - 60_000);
    expect(await reasonOf(issued, expected, NOW - 60_001)).toBe('early');
    expect(await reasonOf(issued, expected, GRANT.expiresAt)).toBe('expired');
  });

  it('keeps every millisecond of its times', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 4e12 }),
        fc.integer({ min: 1, max: 1e9 }),
        async (issuedAt, lifeMs) => {
          const grant = { ...GRANT, issuedAt, expiresAt: issuedAt + lifeMs, maxDurationMs: lifeMs };
          const token = await issueToken(ring, grant);
          const record = { ...grant, token };
          await checkToken(ring, token, record, issuedAt);
          await checkToken(ring, token, record, issuedAt + lifeMs - 1);
          expect(await reasonOf(token, record, issuedAt - 60_001)).toBe('early');
          expect(await reasonOf(token, record, issuedAt + lifeMs)).toBe('expired');
        },
      ),
    );
  });

  verifies('HCP-308', 'is called expired only when all else about it is right', async () => {
    const late = GRANT.expiresAt + 1;
    expect(await reasonOf(await signedWith({ sid: 'other' }), expected, late)).toBe('replayed');
    expect(await reasonOf(await signedWith({ risk: 'R5' }), expected, late)).toBe('widened');
    expect(await reasonOf(await signedWith({}), { ...expected, token: 'another' }, late)).toBe('replayed');
  });

  verifies('HCP-308', 'of another callee is refused, also one that shares our keys', async () => {
    const foreign = await issueToken(ring, { ...GRANT, calleeId: 'other-lab' });
    expect(await reasonOf(foreign)).toBe('foreign');
    expect(await reasonOf(foreign, { ...expected, token: foreign })).toBe('foreign');
  });

  verifies('HCP-308', 'is refused for another session, for another caller, and after a newer one', async () => {
    const ofAnotherSession = await issueToken(ring, { ...GRANT, sessionId: '00000000-0000-4000-8000-000000000000' });
    const ofAnotherCaller = await issueToken(ring, { ...GRANT, callerId: 'mallory' });
    const older = await issueToken(ring, GRANT);
    for (const token of [ofAnotherSession, ofAnotherCaller, older]) expect(await reasonOf(token)).toBe('replayed');
    // Even if it got into the record.
    expect(await reasonOf(ofAnotherSession, { ...expected, token: ofAnotherSession })).toBe('replayed');
    expect(await reasonOf(ofAnotherCaller, { ...expected, token: ofAnotherCaller })).toBe('replayed');
  });

  const widened: Record<string, object> = {
    'a higher risk': { risk: 'R5' },
    'a lower risk than on record': { risk: 'R1' },
    'another data class': { data: 'T4' },
    'another capability': { cap: 'melt@1.2.0' },
    'another version': { cap: 'heat@2.0.0' },
    'a longer duration': { lim: { max_duration: 'P1D', abort_timeout: 'PT5M' } },
    'a longer abort time-out': { lim: { max_duration: 'PT4H', abort_timeout: 'PT1H' } },
    'no limits': { lim: {} },
    'limits that are missing': { lim: undefined },
    'one more limit': { lim: { max_duration: 'PT4H', abort_timeout: 'PT5M', more: 1 } },
    'another envelope': { env: createHash('sha256').update('{}').digest('hex') },
    'no envelope': { env: undefined },
    'a claim more': { admin: true },
  };
  for (const [what, changes] of Object.entries(widened)) {
    verifies('HCP-308', `is refused with ${what}`, async () => {
      const token = await signedWith(changes);
      expect(await reasonOf(token)).toBe('widened');
      expect(await reasonOf(token, { ...expected, token })).toBe('widened');
    });
  }

  it('is refused when the record was widened instead', async () => {
    const records: readonly Partial<ExpectedToken>[] = [
      { riskLevel: 'R4' },
      { dataClassification: 'T4' },
      { maxDurationMs: GRANT.maxDurationMs * 2 },
      { abortTimeoutMs: 1 },
      { version: '1.2.1' },
      { safetyEnvelope: {} },
      { safetyEnvelope: { ...GRANT.safetyEnvelope, prohibited_actions: [] } },
    ];
    for (const changes of records) {
      expect(await reasonOf(issued, { ...expected, ...changes })).toBe('widened');
    }
  });

  it('does not mind in which order an envelope was written', async () => {
    const { parameters, prohibited_actions } = GRANT.safetyEnvelope;
    const record = { ...expected, safetyEnvelope: JSON.parse(JSON.stringify({ prohibited_actions, parameters })) };
    expect(await checkToken(ring, issued, record, NOW)).toMatchObject({ sid: GRANT.sessionId });
  });

  it('is refused without an id or times, or with times that are none', async () => {
    for (const changes of [{ jti: undefined }, { iat: undefined }, { exp: undefined }, { exp: '9e9' }, { iat: null }]) {
      const token = await signedWith(changes);
      expect(await reasonOf(token, { ...expected, token })).toBe('malformed');
    }
  });

  verifies('HCP-308', 'is refused when forged: unsigned, of another key, of another kind', async () => {
    const [, payload] = issued.split('.');
    const unsigned = `${part({ alg: 'none', kid: 'k1', typ: KIND })}.${payload}.`;
    const attackers = await createKeyRing([{ ...(await generateKey()), kid: 'k1' }]);
    const strangers = await createKeyRing([await generateKey()]);
    const otherKind = await ring.sign(claimsOf(issued), 'hcp-test+jwt');
    const changed = issued.replace(`.${payload}.`, `.${part({ ...claimsOf(issued), risk: 'R5' })}.`);
    for (const [token, reason] of [
      [unsigned, 'forged'],
      [changed, 'forged'],
      [await issueToken(attackers, GRANT), 'forged'],
      [await issueToken(strangers, GRANT), 'unknown_key'],
      [otherKind, 'kind'],
      ['opaque-token', 'malformed'],
      ['', 'malformed'],
    ] as const) {
      // Also when it got into the record.
      expect([await reasonOf(token), await reasonOf(token, { ...expected, token })]).toEqual([reason, reason]);
    }
  });

  it('outlives the rotation of its key, and ends with its retirement', async () => {
    const rotated = await createKeyRing([key]);
    await rotated.rotate({ ...(await generateKey('HS256')), kid: 'k2' });
    expect(await checkToken(rotated, issued, expected, NOW)).toEqual(claimsOf(issued));
    await rotated.retire('k1');
    await expect(checkToken(rotated, issued, expected, NOW)).rejects.toMatchObject({ reason: 'unknown_key' });
  });

  it('is compared as a whole', () => {
    expect(isSameToken(issued, `${issued}`)).toBe(true);
    for (const other of ['', `${issued}x`, issued.slice(0, -1), issued.toLowerCase()]) {
      expect(isSameToken(issued, other)).toBe(false);
    }
  });

  it('is described in the words of its schema', async () => {
    const described = describeToken(issued, await checkToken(ring, issued, expected, NOW));
    expect(described).toEqual({
      token: issued,
      issued_at: '2025-01-15T08:30:01.234Z',
      expires_at: '2025-01-15T09:30:01.235Z',
      approved_risk_level: 'R3',
      approved_data_classification: 'T2',
      constraints: { max_duration: 'PT4H', abort_timeout: 'PT5M' },
    });
    expect(schemaFault('session_token', described)).toBeUndefined();
  });

  verifies('HCP-014', 'and its key reach no log, neither by its description nor by a refusal', async () => {
    let output = '';
    const destination = new Writable({
      write(chunk, _, done) {
        output += chunk;
        done();
      },
    });
    const logger = createLogger({ level: 'debug' }, destination);
    const claims = await checkToken(ring, issued, expected, NOW);
    logger.info({ described: describeToken(issued, claims), ring, expected }, 'Checked');
    const error: unknown = await checkToken(ring, `${issued}x`, expected, NOW).catch((refusal) => refusal);
    logger.error({ error }, 'Refused');
    expect(output).toContain('token_invalid');
    for (const text of [...issued.split('.'), String(key.d)]) expect(output).not.toContain(text);
  });
});
