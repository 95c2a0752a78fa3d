import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type CliOptions, type CliResult, runHcp } from './cli.ts';
import type { World } from './world.ts';

/** Where and who a world is, as options of `hcp`. */
export function optionsFor({ stack, calleeId, callerId }: World): string[] {
  const { transportUrl, storeUrl } = stack;
  const transport = transportUrl.startsWith('sqlite:') ? ['--db', transportUrl.slice(7)] : ['--amqp', transportUrl];
  return [...transport, '--store', storeUrl, '--callee-id', calleeId, '--caller-id', callerId];
}

/** Runs `hcp` in a world: a text is its words. */
export function hcpIn(world: World, argv: string | readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const words = typeof argv === 'string' ? argv.split(' ') : argv;
  return runHcp([...words, ...optionsFor(world)], options);
}

/** What it printed as JSON. */
export async function hcpJson(world: World, argv: string): Promise<{ readonly code: number; readonly value: unknown }> {
  const { code, out } = await hcpIn(world, `${argv} --json`);
  return { code, value: JSON.parse(out.join('\n')) };
}

/** A folder that is gone after the test. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hcp-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
