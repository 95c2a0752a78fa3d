import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { type Document, deadLinks, proseOf, ROOT, readDocuments } from './docs/markdown.ts';
import { isProgram, Workshop } from './docs/programs.ts';
import { shellFaults } from './docs/shell.ts';

const run = promisify(execFile);
const documents = readDocuments();
const blocks = documents.flatMap((document) => document.blocks);
const workshop = new Workshop();
afterAll(() => workshop[Symbol.dispose]());

/** A document that was made up, to see that a fault in one is found. */
function document(text: string): Document {
  const lines = text.split('\n');
  const info = (lines[1] ?? '').slice(3);
  return {
    path: 'docs/made-up.md',
    lines,
    blocks: [{ path: 'docs/made-up.md', line: 2, info, lines: lines.slice(2, -1) }],
  };
}

describe('the documents', () => {
  it('have code blocks that say what they are in', () => {
    const known = ['', 'ts', 'ts run', 'js', 'json', 'jsonl', 'sh', 'text', 'mermaid', 'xml', 'yaml', 'html', 'ini'];
    const strange = blocks.filter(({ info }) => !known.includes(info));
    expect(strange.map(({ path, line, info }) => `${path}:${line} ${info}`)).toEqual([]);
  });

  it('show TypeScript that the compiler accepts, against the types of the built package', async () => {
    expect(blocks.filter(({ info }) => info.startsWith('ts')).length).toBeGreaterThan(10);
    expect(await workshop.typeFaults(documents)).toEqual([]);
  }, 120_000);

  it('would not get away with TypeScript that is wrong', async () => {
    using other = new Workshop();
    const wrong = document('# Title\n```ts\nawait caller.submit(task, { callee: 1 });\n```');
    expect(await other.typeFaults([wrong])).toEqual([expect.stringContaining('docs/made-up.md.ts(3,')]);
  }, 120_000);

  it.each(blocks.filter(isProgram).map((block) => [`${block.path}:${block.line}`, block] as const))(
    'show a program that runs as pasted: %s',
    async (_, block) => {
      await workshop.run(block);
    },
    60_000,
  );

  it('show JSON that parses', () => {
    for (const { path, line, info, lines } of blocks) {
      if (info === 'json') expect(() => JSON.parse(lines.join('\n')), `${path}:${line}`).not.toThrow();
      if (info !== 'jsonl') continue;
      for (const text of lines) expect(() => JSON.parse(text), `${path}:${line}`).not.toThrow();
    }
  });

  it('name only scripts and hcp commands that exist, with options that exist', () => {
    const faults = documents.flatMap((document) => {
      const inline = proseOf(document).flatMap((line) => [...line.matchAll(/`((?:npx )?hcp [^`]+|npm [^`]+)`/g)]);
      const shell = document.blocks.filter(({ info }) => info === 'sh').flatMap(({ lines }) => lines);
      const typed = [...inline.map(([, text = '']) => text), ...shell];
      return typed.flatMap((line) => shellFaults(line).map((fault) => `${document.path}: ${fault}`));
    });
    expect([...new Set(faults)]).toEqual([]);
  });

  it('would not get away with a command that does not exist', () => {
    expect(shellFaults('npm ci && npm run nonsense')).toEqual(['There is no script nonsense']);
    expect(shellFaults('npx hcp nonsense now --json | head')).toEqual(['There is no command hcp nonsense now']);
    expect(shellFaults('HCP_DB=a.db hcp nonsense # hcp is a word here')).toEqual(['There is no command hcp nonsense']);
    expect(shellFaults('npm run hcp -- doctor --nonsense "a; b"')).toEqual(['hcp doctor has no option --nonsense']);
    expect(shellFaults('hcp <command> --help')).toEqual([]);
  });

  it('link to files and headings that exist', () => {
    expect(documents.flatMap(deadLinks)).toEqual([]);
    expect(deadLinks(document('[a](nowhere.md), [b](README.md#nowhere), [c](https://example.org)'))).toHaveLength(2);
  });

  it('are all in the index', () => {
    const index = readFileSync(join(ROOT, 'docs/README.md'), 'utf8');
    const missing = readdirSync(join(ROOT, 'docs')).filter(
      (name) => name !== 'README.md' && !index.includes(`(${name})`),
    );
    expect(missing).toEqual([]);
  });
});

describe('getting started', () => {
  /** The block that says in its first line which file it is. */
  const file = (name: string) => {
    const block = blocks.find(({ lines }) => lines[0] === `// ${name}`);
    if (block === undefined) throw new Error(`No document shows ${name}`);
    return block;
  };

  it('by hand, with the two programs it shows, works', async () => {
    await using lab = await workshop.start(file('lab.ts'));
    expect(lab.said).toBe('lab takes tasks\n');
    expect(await workshop.run(file('ask.ts'))).toContain('{ grams: [ 10, 11, 12 ] }');
  }, 60_000);
});

describe('README', () => {
  it('shows a program that tells what it says it tells', async () => {
    const hello = blocks.find(({ path, info }) => path === 'README.md' && info === 'js');
    if (hello === undefined) throw new Error('README.md has no program');
    const lines = (await workshop.run(hello)).split('\n');
    const sequences = lines.filter((line) => line.startsWith('event ')).map((line) => line.split(' ')[1]);
    expect(sequences.slice(0, 8)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']);
    expect(lines).toContain('completed { counted: 3 }');
  });

  it('begins with the one command that shows everything', () => {
    const [first] = blocks.filter(({ path, info }) => path === 'README.md' && info === 'sh');
    expect(first?.lines).toEqual(['npm ci && npm run demo']);
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
