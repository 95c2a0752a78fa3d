import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');

describe('README', () => {
  it('shows a program that runs as pasted, in an empty folder with the package installed', async () => {
    const [, program = ''] = /```js\n([\s\S]*?)```/.exec(readme) ?? [];
    const folder = mkdtempSync(join(tmpdir(), 'hcp-readme-'));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(ROOT, join(folder, 'node_modules', 'hcp-sdk'));
    writeFileSync(join(folder, 'hello.mjs'), program);
    const { stdout } = await run(process.execPath, ['hello.mjs'], { cwd: folder });
    const events = stdout.split('\n').filter((line) => line.startsWith('event '));
    expect(events.slice(0, 8).map((line) => line.split(' ')[1])).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']);
    expect(stdout).toMatch(/^completed { counted: 3 }$/m);
  });

  it('links to files that exist', () => {
    const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map(([, path = '']) => path);
    expect(links.length).toBeGreaterThan(4);
    for (const path of links) expect(() => readFileSync(join(ROOT, path)), path).not.toThrow();
  });
});

describe('the package', () => {
  it('carries its build, its schemas and its licence, and nothing else', async () => {
    const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT });
    const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
    const paths = files.map(({ path }) => path);
    const entries = Object.values<{ default?: string } | string>(
      JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).exports,
    )
      .map((entry) => (typeof entry === 'object' ? entry.default : undefined))
      .filter((entry) => entry !== undefined);
    expect(paths).toEqual(expect.arrayContaining(entries.map((entry) => entry.replace('./', ''))));
    expect(paths).toEqual(
      expect.arrayContaining(['LICENSE', 'README.md', 'schemas/asyncapi.json', 'schemas/events/log.schema.json']),
    );
    expect(
      paths.filter((path) => !/^(dist|schemas)\/|^(LICENSE|README\.md|CHANGELOG\.md|package\.json)$/.test(path)),
    ).toEqual([]);
  });
});

describe('examples', () => {
  it.each(readdirSync(join(ROOT, 'examples')))('%s ends well, and checks itself', async (name) => {
    const { stdout } = await run(process.execPath, [join(ROOT, 'examples', name, 'demo.ts')]);
    expect(stdout).toContain('Nothing lost, nothing twice');
  });
});
