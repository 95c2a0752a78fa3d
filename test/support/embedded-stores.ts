import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { openStore } from '../../shared/store/open-store.ts';
import type { Store } from '../../shared/store/store.ts';

const KINDS = [
  { name: 'memory store', open: () => openStore('memory:') },
  { name: 'SQLite store', open: openInFile },
] as const;

/** Runs a suite on the two stores that need no server. `open()` makes an empty one, to be disposed of by the test. */
export function describeOnEmbeddedStores(name: string, body: (open: () => Promise<Store>) => void): void {
  for (const kind of KINDS) describe(`${name} (${kind.name})`, () => body(kind.open));
}

async function openInFile(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'hcp-store-'));
  const store = await openStore(`sqlite:${join(folder, 'store.db')}`);
  return {
    ...store,
    async [Symbol.asyncDispose]() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
