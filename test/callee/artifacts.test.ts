import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { artifactUri, describeFile, parseArtifactUri } from '../../callee/artifacts/index.ts';
import { requestedRange } from '../../callee/artifacts/requested-range.ts';
import { disposableFolder } from '../shared/store/support/disposable-folder.ts';
import { S1 } from '../support/messages.ts';
import { mistake } from '../support/mistakes.ts';

const NUL = String.fromCharCode(0);

describe('the URI of an artifact', () => {
  it('is made of the callee, the session and the encoded name', () => {
    expect(artifactUri('lab', S1.toUpperCase(), 'Kurve 1?#.csv')).toBe(`hcp://lab/${S1}/Kurve%201%3F%23.csv`);
  });

  it('comes back whatever the name is, and the name stays in its folder', () => {
    const isFit = (name: string) =>
      !/[/\\\p{Cc}\p{Zl}\p{Zp}]/u.test(name) && name !== '.' && name !== '..' && Buffer.byteLength(name) <= 255;
    const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }).filter(isFit);
    fc.assert(
      fc.property(names, (name) => {
        const uri = artifactUri('lab', S1, name);
        expect(uri).toMatch(/^[!-~]+$/);
        expect(parseArtifactUri(uri)).toEqual({ calleeId: 'lab', sessionId: S1, name });
        expect(basename(join('/artifacts', name))).toBe(name);
      }),
    );
  });

  it('keeps a name that looks encoded as it is', () => {
    for (const name of ['%2e%2e', '%2F', '100%', 'a+b', '...', ' ', '~', "it's (1)!*"]) {
      expect(parseArtifactUri(artifactUri('lab', S1, name))?.name).toBe(name);
    }
  });

  it('is not made for a name that is no file name, nor for wrong ids', () => {
    const names = [
      '',
      '.',
      '..',
      'a/b',
      'a\\b',
      '../etc/passwd',
      `a${NUL}b`,
      'a\nb',
      'a\u2028b',
      '\ud800',
      'é'.repeat(128),
    ];
    for (const name of names) expect(mistake(() => artifactUri('lab', S1, name))).toMatch(/^name must be a file name/);
    expect(mistake(() => artifactUri('a.b', S1, 'x'))).toMatch(/^calleeId must be/);
    expect(mistake(() => artifactUri('lab', '..', 'x'))).toMatch(/^sessionId must be/);
    expect(artifactUri('lab', S1, 'é'.repeat(127))).toHaveLength(47 + 127 * 6);
  });

  const good = `hcp://lab/${S1}/a.csv`;
  const hostile: readonly [what: string, text: unknown][] = [
    ['nothing', ''],
    ['no text', 7],
    ['an object that turns into one', { toString: () => good }],
    ['another scheme', good.replace('hcp:', 'http:')],
    ['an upper-case scheme', good.replace('hcp:', 'HCP:')],
    ['a slash too few', good.replace('//', '/')],
    ['a slash too many', good.replace('//', '///')],
    ['a slash at the end', `${good}/`],
    ['an empty part', good.replace(`/${S1}/`, `/${S1}//`)],
    ['a path in the name', `hcp://lab/${S1}/a/b.csv`],
    ['a way up', `hcp://lab/${S1}/..`],
    ['a way up, encoded', `hcp://lab/${S1}/%2e%2E`],
    ['a way up and down', `hcp://lab/${S1}/../../etc/passwd`],
    ['a way up and down, encoded', `hcp://lab/${S1}/..%2F..%2Fetc%2Fpasswd`],
    ['a way up by backslashes', `hcp://lab/${S1}/..\\..\\boot.ini`],
    ['a way up by backslashes, encoded', `hcp://lab/${S1}/..%5C..%5Cboot.ini`],
    ['a way up instead of a session', 'hcp://lab/../a.csv'],
    ['a session id of another version', `hcp://lab/${S1.replace('-4', '-1')}/a.csv`],
    ['a dot in the callee id', good.replace('lab', 'l.ab')],
    ['a user', good.replace('lab', 'root@lab')],
    ['a port', good.replace('lab', 'lab:80')],
    ['a query', `${good}?x=1`],
    ['a fragment', `${good}#x`],
    ['a space before it', ` ${good}`],
    ['a line end behind it', `${good}\n`],
    ['a NUL', `${good}${NUL}`],
    ['a NUL, encoded', `${good}%00`],
    ['a line end, encoded', `${good}%0d%0aX-Evil:%20yes`],
    ['letters that are not encoded', `hcp://lab/${S1}/ä.csv`],
    ['an overlong encoding of a slash', `hcp://lab/${S1}/..%C0%AFx`],
    ['a broken encoding', `hcp://lab/${S1}/%E4`],
    ['half an encoding', `hcp://lab/${S1}/a%2`],
    ['an encoded half of a character', `hcp://lab/${S1}/%ED%A0%80`],
    ['a name without end', `hcp://lab/${S1}/${'a'.repeat(100_000)}`],
    ['a name too long', `hcp://lab/${S1}/${'a'.repeat(256)}`],
  ];
  it.each(hostile)('is not seen in %s', (_, text) => {
    expect(parseArtifactUri(text)).toBeUndefined();
  });

  it('is never seen with a name that leads elsewhere, whatever stands there', () => {
    const part = fc.oneof(fc.constantFrom('..', '.', '/', '\\', '%2f', '%5C', '%2e', '%00', '%', 'a'), fc.string());
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const name = parseArtifactUri(`hcp://lab/${S1}/${parts.join('')}`)?.name;
        if (name !== undefined) expect(join('/artifacts', name)).toBe(`/artifacts/${name}`);
      }),
    );
  });
});

describe('describeFile', () => {
  const folder = disposableFolder();
  afterAll(() => folder[Symbol.dispose]());
  const session = { calleeId: 'lab', sessionId: S1 };

  it('tells the size and the checksum of a file of any size', async () => {
    for (const size of [0, 1, 200_000]) {
      const path = join(folder.path, 'measured');
      const content = randomBytes(size);
      writeFileSync(path, content);
      expect(await describeFile({ path, name: 'curve.csv', type: 'text/csv; charset=utf-8', ...session })).toEqual({
        name: 'curve.csv',
        type: 'text/csv; charset=utf-8',
        uri: `hcp://lab/${S1}/curve.csv`,
        size_bytes: size,
        checksum: `sha256:${createHash('sha256').update(content).digest('hex')}`,
      });
    }
  });

  it('leaves an address of the vendor as it is', async () => {
    const path = join(folder.path, 'elsewhere');
    writeFileSync(path, 'x');
    const uri = 'https://files.example/x';
    expect(await describeFile({ path, name: 'a/b', type: 'text/plain', uri })).toMatchObject({ name: 'a/b', uri });
  });

  it('refuses what could not be told, before it reads', async () => {
    const file = { path: join(folder.path, 'missing'), name: 'x', type: 'text/csv', ...session };
    await expect(describeFile({ ...file, type: 'text/csv\r\nX-Evil: yes' })).rejects.toThrow(TypeError);
    await expect(describeFile({ ...file, type: 'csv' })).rejects.toThrow(/^type must be a MIME type/);
    await expect(describeFile({ ...file, name: '../x' })).rejects.toThrow(/^name must be a file name/);
  });

  it('rejects when there is no file, or it is told to stop', async () => {
    const file = { name: 'x', type: 'text/csv', ...session };
    await expect(describeFile({ ...file, path: join(folder.path, 'missing') })).rejects.toThrow(/ENOENT/);
    mkdirSync(join(folder.path, 'folder'));
    await expect(describeFile({ ...file, path: join(folder.path, 'folder') })).rejects.toThrow(/EISDIR/);
    const reason = new Error('Enough');
    const stopped = describeFile({ ...file, path: join(folder.path, 'missing'), signal: AbortSignal.abort(reason) });
    await expect(stopped).rejects.toBe(reason);
  });
});

describe('a requested range', () => {
  const etag = '"sha256:1"';
  const cases: readonly [range: string | undefined, size: number, wanted: unknown][] = [
    [undefined, 10, 'whole'],
    ['bytes=0-3', 10, { start: 0, end: 3 }],
    ['bytes=0-0', 10, { start: 0, end: 0 }],
    ['bytes=4-', 10, { start: 4, end: 9 }],
    ['bytes=4-99', 10, { start: 4, end: 9 }],
    ['bytes=-3', 10, { start: 7, end: 9 }],
    ['bytes=-99', 10, { start: 0, end: 9 }],
    ['Bytes=9-9', 10, { start: 9, end: 9 }],
    ['bytes=10-', 10, 'unsatisfiable'],
    ['bytes=10-12', 10, 'unsatisfiable'],
    ['bytes=-0', 10, 'unsatisfiable'],
    ['bytes=0-', 0, 'unsatisfiable'],
    ['bytes=-5', 0, 'unsatisfiable'],
    ['bytes=3-2', 10, 'whole'],
    ['bytes=0-1,3-4', 10, 'whole'],
    ['bytes=-', 10, 'whole'],
    ['bytes=a-b', 10, 'whole'],
    ['bytes=-1-2', 10, 'whole'],
    ['lines=0-1', 10, 'whole'],
    [`bytes=${'9'.repeat(400)}-`, 10, 'whole'],
  ];
  it.each(cases)('%s of %i bytes is %o', (range, size, wanted) => {
    expect(requestedRange(range === undefined ? {} : { range }, { size, etag })).toEqual(wanted);
  });

  it('counts only for the content the client has a part of', () => {
    const range = 'bytes=0-3';
    const within = (ifRange: string) => requestedRange({ range, 'if-range': ifRange }, { size: 10, etag });
    expect(within(etag)).toEqual({ start: 0, end: 3 });
    for (const other of ['"sha256:2"', `W/${etag}`, 'Wed, 15 Jan 2025 08:30:00 GMT', '']) {
      expect(within(other)).toBe('whole');
    }
    expect(requestedRange({ range, 'if-range': etag }, { size: 10, etag: undefined })).toBe('whole');
  });
});
