import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { schemas } from '../../schemas/index.ts';
import { runHcp } from '../support/cli.ts';
import { scratchFolder } from '../support/cli-world.ts';

const SCHEMAS = fileURLToPath(new URL('../../schemas', import.meta.url));

describe('hcp schemas', () => {
  it('lists every schema and what it is for', async () => {
    const { code, out } = await runHcp(['schemas']);
    expect(code).toBe(0);
    expect(out.map((line) => line.split(' ')[0])).toEqual(Object.keys(schemas));
    const { out: json } = await runHcp(['schemas', 'list', '--json']);
    expect(JSON.parse(json.join())).toContainEqual({ name: 'event:progress', description: 'How far the work is.' });
  });

  it('prints one, as it is', async () => {
    const { out } = await runHcp(['schemas', 'print', 'event:log']);
    expect(JSON.parse(out.join('\n'))).toEqual(schemas['event:log']);
    const { code, err } = await runHcp(['schemas', 'print', 'event:lag']);
    expect({ code, err }).toEqual({
      code: 2,
      err: ['hcp: There is no schema event:lag; did you mean event:log? (hcp --help)'],
    });
  });

  it('writes them all, laid out as in the package', async () => {
    const folder = join(scratchFolder(), 'new', 'folder');
    const { code, out } = await runHcp(['schemas', 'write', folder]);
    expect({ code, out }).toEqual({ code: 0, out: [`${Object.keys(schemas).length} schemas written to ${folder}`] });
    const files = (root: string) =>
      readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.schema.json'));
    expect(files(folder).sort()).toEqual(files(SCHEMAS).sort());
    for (const path of files(folder)) {
      const [written, original] = [folder, SCHEMAS].map((root) => JSON.parse(readFileSync(join(root, path), 'utf8')));
      expect(written).toEqual(original);
    }
  });

  it('says why it cannot write', async () => {
    const file = join(scratchFolder(), 'file');
    writeFileSync(file, '');
    const { code, err } = await runHcp(['schemas', 'write', file]);
    expect(code).toBe(3);
    expect(err).toEqual([expect.stringMatching(/^hcp: Cannot write .*: /)]);
  });
});
