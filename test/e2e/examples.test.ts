import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

/** Runs an example against the built package, as a reader would. */
async function runExample(path: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [path], {
    cwd: new URL('../..', import.meta.url),
    timeout: 60_000,
  });
  return stdout.trimEnd();
}

describe('examples', () => {
  it('the furnace is graded, approved, bounded and on record', async () => {
    const told = await runExample('examples/furnace/furnace.ts');
    expect(told).toContain('emergency: cooled down');
    expect(told.split('\n').at(-1)).toBe('Nothing unsafe.');
  }, 60_000);

  it('the count survives a kill', async () => {
    const told = await runExample('examples/count/demo.ts');
    expect(told.split('\n').at(-1)).toBe('Nothing lost, nothing twice, nothing out of order.');
  }, 60_000);
});
