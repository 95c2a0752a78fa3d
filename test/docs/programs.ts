import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Block, Document } from './markdown.ts';
import { ROOT } from './markdown.ts';

const run = promisify(execFile);

const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { types: string }>;
};

const IMPORT = /^import\b[^;]*;/gm;

/** Whether the block is a program of its own, to be run. JavaScript always is. */
export function isProgram({ info }: Block): boolean {
  return /^(js|ts run)$/.test(info);
}

/** A folder in which `hcp-sdk` is installed, as is what it depends on. */
export class Workshop implements Disposable {
  readonly folder: string;
  readonly #root = mkdtempSync(join(tmpdir(), 'hcp-docs-'));

  constructor() {
    symlinkSync(join(ROOT, 'node_modules'), join(this.#root, 'node_modules'));
    this.folder = join(this.#root, 'work');
    mkdirSync(join(this.folder, 'node_modules'), { recursive: true });
    symlinkSync(ROOT, join(this.folder, 'node_modules', 'hcp-sdk'));
    writeFileSync(join(this.folder, 'package.json'), '{ "type": "module", "imports": { "#prelude": "./prelude.ts" } }');
  }

  [Symbol.dispose](): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  write(name: string, text: string): string {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  /** Runs a block as it stands. Rejects when it does not end well. */
  async run(block: Block): Promise<string> {
    const extension = block.info.startsWith('ts') ? 'ts' : 'mjs';
    const file = this.write(`${nameOf(block)}.${extension}`, aligned(block));
    const { stdout } = await run(process.execPath, [file], { cwd: this.folder, timeout: 60_000 });
    return stdout;
  }

  /** Starts a program that does not end by itself; resolves when it has said something. */
  async start(block: Block): Promise<AsyncDisposable & { readonly said: string }> {
    const file = this.write(`${nameOf(block)}.ts`, aligned(block));
    const program = spawn(process.execPath, [file], { cwd: this.folder, stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(program, 'exit');
    const [said] = await Promise.race([once(program.stdout, 'data'), ended]);
    const stop = async () => {
      program.kill();
      await ended;
    };
    return { said: String(said), [Symbol.asyncDispose]: stop };
  }

  /** What the compiler says of all TypeScript in the documents, with the documents' own line numbers. */
  async typeFaults(documents: readonly Document[]): Promise<string[]> {
    const prelude = readFileSync(join(ROOT, 'test/docs/prelude.ts'), 'utf8');
    this.write('prelude.ts', prelude);
    for (const document of documents) {
      this.write(`${document.path}.ts`, fragmentsOf(document, exportsOf(prelude)));
      for (const block of document.blocks.filter(({ info }) => info === 'ts run')) {
        this.write(`${document.path}.${block.line}.ts`, aligned(block));
      }
    }
    const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8'));
    const relaxed = { noUnusedLocals: false, noUnusedParameters: false, verbatimModuleSyntax: false };
    const typeRoots = [join(ROOT, 'node_modules/@types')];
    const options = { ...compilerOptions, ...relaxed, rootDir: '.', typeRoots };
    const project = this.write('tsconfig.json', JSON.stringify({ compilerOptions: options, include: ['**/*.ts'] }));
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    const said = await run(process.execPath, [compiler, '--pretty', 'false', '-p', project], { cwd: this.folder }).then(
      () => '',
      ({ stdout, message }: { stdout: string; message: string }) => stdout || message,
    );
    return said.split('\n').filter((line) => line !== '');
  }
}

function nameOf({ path, line }: Block): string {
  return `${path.replaceAll('/', '-')}-${line}`;
}

/** A block at the line where its document has it. */
function aligned({ line, lines }: Block): string {
  return `${'\n'.repeat(line)}${lines.join('\n')}\n`;
}

/**
 * The fragments of a document as one program: each sees what the ones before it have declared, and may use the same names
 * again. Every line keeps its number; imports go to the top, where the names nobody imports are imported too.
 */
function fragmentsOf({ lines, blocks }: Document, preludeNames: readonly string[]): string {
  const program = lines.map(() => '');
  const imports: string[] = [];
  const fragments = blocks.filter(({ info }) => info === 'ts');
  for (const { line, lines: code } of fragments) {
    program[line - 1] = '{';
    const text = code.join('\n').replace(/^export /gm, '');
    const body = text.replace(IMPORT, (statement) => {
      imports.push(statement.replaceAll('\n', ' '));
      return statement.replace(/[^\n]/g, '');
    });
    program.splice(line, code.length, ...body.split('\n'));
  }
  const header = headerOf([...new Set(imports)], preludeNames);
  // The first line of a document is its title.
  program[0] = `${header} export async function read() {`;
  return `${program.join('\n')}${'}'.repeat(fragments.length)}\n}\n`;
}

function headerOf(imports: readonly string[], preludeNames: readonly string[]): string {
  const taken = new Set(imports.flatMap((statement) => statement.match(/\b\w+\b(?=\s*[,}])/g) ?? []));
  const rest = (names: readonly string[]) =>
    names.filter((name) => {
      const isFree = !taken.has(name);
      taken.add(name);
      return isFree;
    });
  const entries = Object.entries(exports).flatMap(([entry, target]) => {
    if (typeof target === 'string') return []; // no module
    const names = exportsOf(readFileSync(join(ROOT, target.types), 'utf8'));
    return [`import { ${rest(names).join(', ')} } from '${entry.replace('.', 'hcp-sdk')}';`];
  });
  return [`import { ${rest(preludeNames).join(', ')} } from '#prelude';`, ...imports, ...entries].join(' ');
}

/** The names a module exports. */
function exportsOf(text: string): string[] {
  const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) => list.split(','));
  const listed = lists.map((item) => item.trim().replace(/^type |^\w+ as /g, ''));
  const declared = text.matchAll(
    /^export (?:declare )?(?:abstract )?(?:function|const|class|interface|type)(?: \* as)? (\w+)/gm,
  );
  return [...listed, ...[...declared].map(([, name = '']) => name)].filter((name) => name !== '');
}
