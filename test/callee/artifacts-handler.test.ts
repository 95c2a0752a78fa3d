import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ArtifactGrant, signGrant } from '../../callee/artifacts/grant.ts';
import { type ArtifactHandlerOptions, artifactUri, createArtifactHandler } from '../../callee/artifacts/index.ts';
import { createKeyRing, type KeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import { HcpError } from '../../shared/errors.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { disposableFolder } from '../shared/store/support/disposable-folder.ts';
import { S1 } from '../support/messages.ts';
import { mistake } from '../support/mistakes.ts';
import { verifies } from '../support/verifies.ts';
import { recordingLogger } from '../support/world.ts';

const keys = await createKeyRing([await generateKey()]);
const TYPE = 'hcp-artifact+jwt';
const folder = disposableFolder();
const clock = new ManualClock();
const { logger, lines } = recordingLogger();
const located: string[] = [];
const tokens: string[] = [];
/** What the handler has promised, oldest first. */
const handled: Promise<void>[] = [];
const responses: ServerResponse[] = [];
let locate: ArtifactHandlerOptions['locate'];
let verify: KeyRing['verify'];
let port: number;

const server = createServer((incoming, response) => {
  responses.push(response);
  handled.push(handle(incoming, response));
});
const handle = createArtifactHandler({
  calleeId: 'lab',
  keys: { verify: (token, typ) => verify(token, typ) },
  locate: (artifact) => locate(artifact),
  clock,
  logger,
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo); // it listens on a port
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
  folder[Symbol.dispose]();
});

beforeEach(() => {
  verify = keys.verify;
  locate = async ({ name }) => {
    located.push(name);
    return join(folder.path, name);
  };
  located.length = 0;
  lines.length = 0;
});

// Whatever happened: a URL in a log is a file for everybody who reads it.
afterEach(() => {
  const parts = tokens.flatMap((token) => token.split('.').slice(1));
  expect(parts.filter((part) => lines.join().includes(part))).toEqual([]);
});

function checksumOf(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

/** A file, and the token for it as `hcp.artifact` makes one. */
async function keep(name: string, content: Uint8Array, more: Partial<ArtifactGrant> = {}): Promise<string> {
  writeFileSync(join(folder.path, name), content);
  return grant(name, { sizeBytes: content.length, checksum: checksumOf(content), ...more });
}

async function grant(name: string, more: Partial<ArtifactGrant> = {}): Promise<string> {
  const address = { calleeId: 'lab', sessionId: S1, name };
  const expiresAt = clock.now() / 1000 + 60;
  const told = { address, callerId: 'alpha', expiresAt, type: 'text/csv', sizeBytes: undefined, checksum: undefined };
  const token = await signGrant(keys, { ...told, ...more }, clock.now());
  tokens.push(token);
  return token;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

function ask(path: string, { method = 'GET', headers = {} }: Asked = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, method, headers, agent: false }, resolve).on('error', reject).end();
  });
}

async function fetched(token: string, asked: Asked = {}) {
  const response = await ask(`/artifacts/${token}`, asked);
  return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
}

const statusOf = async (token: string, asked: Asked = {}) => (await fetched(token, asked)).status;

/** How many times this process has a file open; 0 where the system does not tell. */
function openings(path: string): number {
  if (!existsSync('/proc/self/fd')) return 0;
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      return false; // the one the folder was read by
    }
  }).length;
}

describe('the artifact handler', () => {
  verifies('artifact/1', 'serves the bytes that were told of, of any size', async () => {
    for (const size of [0, 1, 65_536, 1_000_003]) {
      const content = randomBytes(size);
      const { status, headers, body } = await fetched(await keep('curve.csv', content));
      expect([status, body.equals(content)]).toEqual([200, true]);
      expect(headers).toMatchObject({
        'content-type': 'text/csv',
        'content-length': String(size),
        'content-disposition': `attachment; filename="curve.csv"; filename*=UTF-8''curve.csv`,
        'accept-ranges': 'bytes',
        'cache-control': 'private, no-store',
        'x-content-type-options': 'nosniff',
        etag: `"${checksumOf(content)}"`,
      });
    }
  });

  it('works under any path, and without what the result did not tell', async () => {
    const token = await keep('curve.csv', Buffer.from('bytes'), { sizeBytes: undefined, checksum: undefined });
    for (const path of [`/${token}`, `/a/b/c/${token}`, `/${token}?download=1/2`]) {
      const response = await ask(path);
      expect([response.statusCode, response.headers.etag]).toEqual([200, undefined]);
      expect((await buffer(response)).toString()).toBe('bytes');
    }
  });

  verifies('artifact/1', 'serves parts, which make up the whole', async () => {
    const content = randomBytes(200_000);
    const token = await keep('curve.csv', content);
    const part = (range: string, more: Record<string, string> = {}) =>
      fetched(token, { headers: { Range: range, ...more } });
    const first = await part('bytes=0-99999');
    const rest = await part('bytes=100000-');
    expect([first.status, rest.status]).toEqual([206, 206]);
    expect(rest.headers).toMatchObject({ 'content-range': 'bytes 100000-199999/200000', 'content-length': '100000' });
    expect(Buffer.concat([first.body, rest.body]).equals(content)).toBe(true);
    expect((await part('bytes=-5')).body.equals(content.subarray(-5))).toBe(true);
    expect((await part('bytes=7-7')).body.equals(content.subarray(7, 8))).toBe(true);

    const beyond = await part('bytes=200000-');
    expect([beyond.status, beyond.headers['content-range'], beyond.body.length]).toEqual([416, 'bytes */200000', 0]);
    expect(await statusOf(token, { headers: { Range: 'bytes=0-1,5-6' } })).toBe(200);
    expect((await part('bytes=0-1', { 'If-Range': `"${checksumOf(content)}"` })).status).toBe(206);
    const changed = await part('bytes=0-1', { 'If-Range': '"sha256:other"' });
    expect([changed.status, changed.body.length]).toEqual([200, 200_000]);
  });

  it('tells by HEAD what GET would send, and sends nothing', async () => {
    const token = await keep('curve.csv', randomBytes(1000));
    const [head, get] = [await fetched(token, { method: 'HEAD' }), await fetched(token)];
    expect([head.status, head.body.length]).toEqual([200, 0]);
    const { date: _, ...told } = head.headers;
    expect(get.headers).toMatchObject(told);
    expect(await statusOf(token, { method: 'HEAD', headers: { Range: 'bytes=0-1' } })).toBe(200);
  });

  it('sends nothing to a client that has it already', async () => {
    const content = Buffer.from('bytes');
    const token = await keep('curve.csv', content);
    const etag = `"${checksumOf(content)}"`;
    for (const held of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const { status, headers, body } = await fetched(token, { headers: { 'If-None-Match': held } });
      expect([status, headers.etag, body.length]).toEqual([304, etag, 0]);
    }
    expect(await statusOf(token, { headers: { 'If-None-Match': '"sha256:other"' } })).toBe(200);
    const untold = await keep('curve.csv', content, { checksum: undefined });
    expect(await statusOf(untold, { headers: { 'If-None-Match': '"undefined"' } })).toBe(200);
  });

  it('only reads', async () => {
    const token = await keep('curve.csv', Buffer.from('bytes'));
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const { status, headers } = await fetched(token, { method });
      expect([method, status, headers.allow]).toEqual([method, 405, 'GET, HEAD']);
    }
    expect(located).toEqual([]);
  });

  verifies('artifact/1', 'a URL works until it expires', async () => {
    const token = await keep('curve.csv', Buffer.from('bytes'));
    clock.advance(59_999);
    expect(await statusOf(token)).toBe(200);
    clock.advance(1);
    expect([await statusOf(token), await statusOf(token, { method: 'HEAD' })]).toEqual([410, 410]);
    expect(located).toEqual(['curve.csv']);
  });

  verifies('artifact/1', 'a token that is not ours, or not for this, finds nothing', async () => {
    const genuine = await keep('curve.csv', Buffer.from('bytes'));
    const [header = '', payload = '', signature = ''] = genuine.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const stranger = await createKeyRing([await generateKey()]);
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = (changes: object, typ = TYPE) => keys.sign({ ...claims, ...changes }, typ);
    const forged: Readonly<Record<string, string>> = {
      nothing: '',
      nonsense: 'curve.csv',
      'a way up': '..%2F..%2Fetc%2Fpasswd',
      'three dots': '..',
      'no signature': `${header}.${payload}.`,
      'another payload': `${header}.${encode({ ...claims, exp: claims.exp + 3600 })}.${signature}`,
      'no algorithm': `${encode({ alg: 'none', typ: TYPE })}.${payload}.`,
      'a key of somebody else': await stranger.sign(claims, TYPE),
      'a token of another kind': await signed({}, 'hcp-session+jwt'),
      'another issuer': await signed({ iss: 'elsewhere' }),
      'an artifact of another callee': await signed({ uri: artifactUri('elsewhere', S1, 'curve.csv') }),
      'no artifact': await signed({ uri: undefined }),
      'an artifact by another scheme': await signed({ uri: 'file:///etc/passwd' }),
      'a way up, signed': await signed({ uri: `hcp://lab/${S1}/../../etc/passwd` }),
      'a way up, encoded and signed': await signed({ uri: `hcp://lab/${S1}/..%2F..%2Fetc%2Fpasswd` }),
      'no end': await signed({ exp: undefined }),
      'an end that is no time': await signed({ exp: 'never' }),
    };
    for (const [what, token] of Object.entries(forged)) {
      const { status, headers, body } = await fetched(token);
      expect([what, status, body.length]).toEqual([what, 404, 0]);
      expect(headers['cache-control']).toBe('private, no-store');
    }
    expect([located, lines]).toEqual([[], []]);
    expect(await statusOf(genuine)).toBe(200);
  });

  it('a file that is gone is not found, one that changed is gone', async () => {
    const content = Buffer.from('bytes');
    const token = await keep('curve.csv', content);
    writeFileSync(join(folder.path, 'curve.csv'), 'more bytes');
    expect(await statusOf(token)).toBe(410);
    rmSync(join(folder.path, 'curve.csv'));
    expect(await statusOf(token)).toBe(404);
    mkdirSync(join(folder.path, 'folder'), { recursive: true });
    expect(await statusOf(await grant('folder'))).toBe(404);
    locate = async () => undefined;
    expect(await statusOf(token)).toBe(404);
    locate = async () => join(folder.path, 'missing', 'curve.csv');
    expect(await statusOf(token)).toBe(404);
  });

  it('survives a vendor and keys that fail', async () => {
    const token = await keep('curve.csv', Buffer.from('bytes'));
    const well = locate;
    locate = async () => {
      throw new Error('No disk');
    };
    expect(await statusOf(token)).toBe(500);
    locate = async () => 7 as never; // a vendor without types
    expect(await statusOf(token)).toBe(500);
    locate = well;
    verify = async () => {
      throw new HcpError('store_unavailable', 'Not now');
    };
    expect(await statusOf(token)).toBe(503);
    verify = keys.verify;
    expect(await statusOf(token)).toBe(200);
    expect(lines.filter((line) => line.includes('An artifact could not be served'))).toHaveLength(3);
  });

  const LONG = 64 * 1024 * 1024;

  /** A file that does not fit into the buffers between us and a client that does not read. */
  async function keepLong(): Promise<{ token: string; path: string }> {
    const path = join(folder.path, 'long.bin');
    writeFileSync(path, '');
    truncateSync(path, LONG);
    return { token: await grant('long.bin', { sizeBytes: LONG }), path };
  }

  it('breaks off when the file shrinks under it: no client takes a part for the whole', async () => {
    const { token, path } = await keepLong();
    const response = await ask(`/${token}`);
    expect([response.statusCode, openings(path)]).toEqual([200, existsSync('/proc/self/fd') ? 1 : 0]);
    truncateSync(path, 1000);
    await expect(buffer(response)).rejects.toThrow(/aborted/);
    expect(response.complete).toBe(false);
    await handled.at(-1);
    expect(lines.join()).toContain('The file became shorter while it was sent');
    expect(openings(path)).toBe(0);
  });

  it('lets go of the file when the client leaves', async () => {
    const { token, path } = await keepLong();
    const response = await ask(`/${token}`);
    response.destroy();
    await handled.at(-1);
    expect(lines.join()).toContain('An artifact was not sent to its end');
    expect(openings(path)).toBe(0);
  });

  it('sends nothing to a client that left before there was an answer', async () => {
    const { token, path } = await keepLong();
    const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>();
    const { promise: answer, resolve: tellPath } = Promise.withResolvers<string>();
    locate = () => {
      tellAsked();
      return answer;
    };
    const early = request({ host: '127.0.0.1', port, path: `/${token}`, agent: false }).on('error', () => {});
    early.end();
    await asked;
    const left = new Promise((resolve) => responses.at(-1)?.once('close', resolve));
    early.destroy();
    await left;
    tellPath(path);
    await handled.at(-1);
    expect([lines.length, openings(path)]).toEqual([1, 0]);
  });

  it.each([
    ['päper "1" 50%.csv', `filename="p_per _1_ 50_.csv"; filename*=UTF-8''p%C3%A4per%20%221%22%2050%25.csv`],
    ["it's (1)*.txt", `filename="it's (1)*.txt"; filename*=UTF-8''it%27s%20%281%29%2A.txt`],
    ['..profile', `filename="_profile"; filename*=UTF-8''_profile`],
    ['photo\u202egpj.exe', `filename="photo_gpj.exe"; filename*=UTF-8''photo_gpj.exe`],
    ['😀.png', `filename="_.png"; filename*=UTF-8''%F0%9F%98%80.png`],
  ])('offers %s under a safe name', async (name, told) => {
    const { status, headers } = await fetched(await keep(name, Buffer.from('bytes')));
    expect([status, headers['content-disposition']]).toEqual([200, `attachment; ${told}`]);
  });

  it('puts nothing into a header that does not belong there', async () => {
    for (const type of ['text/html\r\nSet-Cookie: a=b', 'text', '', 'ä/ö', 'text/html; charset']) {
      const { status, headers } = await fetched(
        await keep('curve.csv', Buffer.from('bytes'), { type, checksum: 'x"\r\nSet-Cookie: a=b' }),
      );
      expect([status, headers['content-type'], headers.etag]).toEqual([200, 'application/octet-stream', undefined]);
      expect(headers['set-cookie']).toBeUndefined();
    }
  });

  it('refuses options that cannot work', () => {
    const good = { calleeId: 'lab', keys, locate: async () => undefined };
    const wrong = (options: object) => mistake(() => createArtifactHandler({ ...good, ...options }));
    expect(wrong({ calleeId: 'a.b' })).toMatch(/^calleeId must be/);
    expect(wrong({ keys: {} })).toBe('keys must have the methods verify');
    expect(wrong({ locate: '/srv' })).toBe('locate must be a function that answers a path');
    expect(wrong({ baseurl: '' })).toMatch(/^Unknown option baseurl/);
  });
});
