import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** Who may import whom: a folder sees itself and those behind it. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  schemas: [],
  shared: ['schemas'],
  session: ['shared', 'schemas'],
  callee: ['session', 'shared', 'schemas'],
  caller: ['session', 'shared', 'schemas'],
  testing: ['callee', 'caller', 'session', 'shared', 'schemas'],
  conformance: ['testing', 'session', 'shared', 'schemas'],
  cli: ['conformance', 'testing', 'callee', 'caller', 'session', 'shared', 'schemas'],
  console: ['callee', 'caller', 'session', 'shared', 'schemas'],
};

/** Which folder alone may load a driver. */
const DRIVERS: Readonly<Record<string, readonly string[]>> = {
  amqplib: ['shared/transport/amqp/'],
  mongodb: ['shared/store/mongodb/'],
  'node:sqlite': ['shared/transport/sqlite/', 'shared/store/sqlite/'],
};

const ROOT = fileURLToPath(new URL('..', import.meta.url));

interface Import {
  readonly file: string;
  readonly source: string;
  readonly target: string;
}

/** Faults of a set of imports, one sentence each. */
function wrongImports(imports: readonly Import[]): string[] {
  return imports.flatMap(({ file, source, target }) => {
    const driver = DRIVERS[source];
    if (driver) return driver.some((folder) => file.startsWith(folder)) ? [] : [`${file} loads ${source}`];
    if (!source.startsWith('.')) return [];
    const [from = '', to = ''] = [file, target].map((path) => path.split('/')[0]);
    return from === to || LAYERS[from]?.includes(to) ? [] : [`${file} imports ${target}`];
  });
}

function importsOf(folder: string): Import[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => {
      const file = join(folder, path);
      const text = readFileSync(join(ROOT, file), 'utf8');
      const sources = text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g);
      return [...sources].map(([, source = '']) => ({ file, source, target: normalize(join(dirname(file), source)) }));
    });
}

const folders = readdirSync(ROOT).filter((name) => name in LAYERS);
const imports = folders.flatMap(importsOf);

describe('imports', () => {
  it('point one way: callee, caller → session → shared → schemas, each driver in its own folder', () => {
    expect(imports.length).toBeGreaterThan(100);
    expect(wrongImports(imports)).toEqual([]);
  });

  it('would be noticed pointing the wrong way', () => {
    const wrong = (file: string, source: string) =>
      wrongImports([{ file, source, target: normalize(join(dirname(file), source)) }]);
    expect(wrong('callee/a.ts', '../caller/b.ts')).toEqual(['callee/a.ts imports caller/b.ts']);
    expect(wrong('shared/a.ts', '../session/b.ts')).toEqual(['shared/a.ts imports session/b.ts']);
    expect(wrong('callee/a.ts', 'amqplib')).toEqual(['callee/a.ts loads amqplib']);
    expect(wrong('shared/store/memory/a.ts', 'node:sqlite')).toEqual(['shared/store/memory/a.ts loads node:sqlite']);
  });

  it('of the main entry load no driver until one is asked for', () => {
    const eager = new Set<string>();
    const visit = (file: string): void => {
      if (eager.has(file)) return;
      eager.add(file);
      const text = readFileSync(join(ROOT, file), 'utf8');
      for (const [, source = ''] of text.matchAll(/^(?:import|export)(?! type)[^;]*?from '(\.[^']+\.ts)'/gm)) {
        visit(normalize(join(dirname(file), source)));
      }
    };
    visit('shared/index.ts');
    const adapters = [...eager].filter((file) => /\/(amqp|mongodb|sqlite|memory)\//.test(file));
    expect(adapters).toEqual([]);
  });

  it('of the entry points name what they export, one by one', () => {
    const entries = Object.values(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).exports)
      .filter((entry): entry is { default: string } => typeof entry === 'object')
      .map((entry) => entry.default.replace('./dist/', '').replace(/\.js$/, '.ts'));
    expect(entries.length).toBeGreaterThanOrEqual(10);
    for (const entry of entries) {
      const text = readFileSync(join(ROOT, entry), 'utf8');
      expect(text, entry).not.toMatch(/export default|export \* from/);
    }
  });
});
