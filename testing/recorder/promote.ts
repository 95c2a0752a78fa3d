import { writeFile } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { EventHandler } from '../../caller/index.ts';
import { choiceOption } from '../../shared/option-checks.ts';
import { createMemoryStore } from '../../shared/store/memory/index.ts';
import type { Tables } from '../../shared/store/tables.ts';
import { type Replay, replayRecording } from './replay.ts';

export interface PromoteOptions {
  /** The module of the handler: it exports `onEvent`, and `tables` (with `hcpTables` among them) if the handler writes rows. */
  readonly handler: string | URL;
  /** @default 'node:test' */
  readonly runner?: 'node:test' | 'vitest';
}

interface HandlerModule {
  readonly onEvent?: EventHandler;
  readonly tables?: Tables;
}

/**
 * Makes a regression test of a recording: replays it once, and writes a test file that replays it and asserts the same
 * outcome and effects. Rejects where the test file exists already.
 */
export async function promote(file: string | URL, testFile: string | URL, options: PromoteOptions): Promise<Replay> {
  const runner = choiceOption<'node:test' | 'vitest'>(options.runner, 'runner', ['node:test', 'vitest']);
  const module = pathOf(options.handler);
  const { onEvent, tables }: HandlerModule = await import(pathToFileURL(module).href);
  if (onEvent === undefined) throw new TypeError(`${module} must export onEvent`);
  await using store = createMemoryStore(tables && { tables });
  const replay = await replayRecording(file, { onEvent, store });
  const from = dirname(pathOf(testFile));
  const names = { runner, recording: seenFrom(from, pathOf(file)), module: seenFrom(from, module) };
  await writeFile(testFile, sourceOf(replay, names, tables !== undefined), { flag: 'wx' });
  return replay;
}

function sourceOf(
  replay: Replay,
  { runner, recording, module }: { runner: string; recording: string; module: string },
  hasTables: boolean,
): string {
  const imported = hasTables ? 'onEvent, tables' : 'onEvent';
  const lines = [
    `import assert from 'node:assert/strict';`,
    `import { test } from '${runner}';`,
    ...(hasTables ? [`import { openStore } from 'hcp-sdk';`] : []),
    `import { replayRecording } from 'hcp-sdk/testing';`,
    `import { ${imported} } from ${JSON.stringify(module)};`,
    '',
    `test(${JSON.stringify(`${basename(recording)} has the outcome and the effects it had when it was promoted`)}, async () => {`,
    `  const recording = new URL(${JSON.stringify(recording)}, import.meta.url);`,
    ...(hasTables ? [`  const store = await openStore('memory:', { tables });`] : []),
    `  const replay = await replayRecording(recording, { onEvent${hasTables ? ', store' : ''} });`,
    `  assert.deepEqual(replay, ${JSON.stringify(replay, null, 2).replaceAll('\n', '\n  ')});`,
    '});',
    '',
  ];
  return lines.join('\n');
}

function pathOf(file: string | URL): string {
  return resolve(file instanceof URL ? fileURLToPath(file) : file);
}

/** As an import or a URL wants it. */
function seenFrom(folder: string, path: string): string {
  const seen = relative(folder, path).replaceAll('\\', '/');
  return seen.startsWith('.') ? seen : `./${seen}`;
}
