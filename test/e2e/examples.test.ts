import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { describeOnStacks } from '../support/stacks.ts';

const ROOT = new URL('../..', import.meta.url);
const run = promisify(execFile);

/** Runs an example against the built package, as a reader would; answers what it told, and its last line. */
async function runExample(path: string, env: NodeJS.ProcessEnv = {}): Promise<{ told: string; end: string }> {
  const { stdout } = await run(process.execPath, [`examples/${path}`], {
    cwd: ROOT,
    env: { ...process.env, HCP_AMQP_URL: undefined, HCP_MONGODB_URL: undefined, ...env },
    timeout: 60_000,
  });
  const told = stdout.trimEnd();
  return { told, end: told.split('\n').at(-1) ?? '' };
}

describe('examples', () => {
  it('can each be run by name', async () => {
    const entries = readdirSync(new URL('examples/', ROOT), { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const refusal = run(process.execPath, ['scripts/run-example.ts', 'nobody'], { cwd: ROOT });
    await expect(refusal).rejects.toMatchObject({
      code: 2,
      stderr: `Usage: npm run example -- <name>, one of ${names.join(', ')}\n`,
    });
    expect((await run(process.execPath, ['scripts/run-example.ts', 'hello'], { cwd: ROOT })).stdout).toContain('Hello');
  }, 60_000);

  it('hello prints a session', async () => {
    const { told, end } = await runExample('hello/caller.ts');
    expect(told).toMatch(/^5 {2}session_closed/m);
    expect(end).toBe('Hello, Ada!');
  }, 60_000);

  it('the count survives a kill, repetitions and another order, event by event', async () => {
    const { told, end } = await runExample('count/demo.ts');
    expect(told).toContain('kills the callee with SIGKILL');
    expect(told).toContain('goes from PAUSED to RUNNING: recovered_from_checkpoint');
    const [, events, effects] = /(\d+) events, (\d+) effects, 0 lost, 0 twice/.exec(told) ?? [];
    expect(Number(events)).toBeGreaterThan(60);
    expect(effects).toBe(events);
    expect(told).not.toContain('\x1b'); // no terminal, no colours
    expect(end).toBe('Nothing lost, nothing twice, nothing out of order.');
  }, 60_000);

  it('the robot arm is graded, approved, bounded and on record', async () => {
    const { told, end } = await runExample('robot-arm/caller.ts');
    expect(told).toContain('emergency stop');
    expect(end).toBe('Nothing unsafe.');
  }, 60_000);

  it('the research goes on after a kill, a failure and a time-out', async () => {
    const { told, end } = await runExample('research/caller.ts');
    expect(told).toContain('kills the library with SIGKILL');
    expect(end).toBe('Nothing read in vain.');
  }, 60_000);

  it('the pipeline feeds one callee from the other, with a pause and an abort on the way', async () => {
    const { told, end } = await runExample('pipeline/caller.ts');
    expect(told).toContain('resumes sample 3');
    expect(end).toBe('Each sample as it should.');
  }, 60_000);
});

describeOnStacks('the ledger example', (stack) => {
  it('books every movement once, although its program is killed', async () => {
    const { transportUrl, storeUrl } = stack();
    const isEmbedded = storeUrl.startsWith('sqlite:');
    const servers = isEmbedded ? {} : { HCP_AMQP_URL: transportUrl, HCP_MONGODB_URL: storeUrl };
    const { told, end } = await runExample('ledger/demo.ts', servers);
    expect(told).toContain(isEmbedded ? 'books in sqlite' : 'books in mongodb');
    expect(told).toContain('is killed with SIGKILL');
    expect(end).toBe('To the cent.');
  }, 60_000);
});
