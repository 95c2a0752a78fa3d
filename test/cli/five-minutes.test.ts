import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MINUTES_5 = 300_000;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hcp-five-minutes-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The environment of a new user: ours with our own Node first, and nothing that says where servers are. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HCP_'))),
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
};

/** What `npm install` of the packed package does, with the dependencies that are here already: there may be no registry. */
async function install(tarball: string, project: string): Promise<void> {
  const modules = join(project, 'node_modules');
  const sdk = join(modules, 'hcp-sdk');
  mkdirSync(join(modules, '.bin'), { recursive: true });
  mkdirSync(sdk);
  await run('tar', ['-xzf', tarball, '-C', sdk, '--strip-components', '1']);
  const { bin, dependencies } = JSON.parse(readFileSync(join(sdk, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  chmodSync(join(sdk, bin.hcp), 0o755);
  symlinkSync(join('..', 'hcp-sdk', bin.hcp), join(modules, '.bin', 'hcp'));
}

/** Starts a program; resolves when it says what is expected. */
async function started(command: string, args: readonly string[], cwd: string, word: string): Promise<ChildProcess> {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) if (line.includes(word)) return child;
  throw new Error(`${command} ended without saying ${word}`);
}

describe('five minutes', () => {
  it('take a new user from the package to a task that another process has done', async () => {
    const begin = performance.now();
    const { stdout } = await run(
      'npm',
      ['pack', '--json', '--ignore-scripts', '--offline', '--pack-destination', folder],
      { cwd: ROOT },
    );
    const [{ filename }] = JSON.parse(stdout);
    const tarball = join(folder, basename(filename));
    await install(tarball, folder);
    const hcp = join(folder, 'node_modules', '.bin', 'hcp');

    const project = join(folder, 'my-callee');
    await run(hcp, ['new', 'callee', 'my-callee', '--sdk', `file:${tarball}`], { cwd: folder, env });
    await install(tarball, project);
    const callee = await started(process.execPath, ['callee.mjs'], project, 'offers tea.brew');
    try {
      const submit = ['submit', 'tea.brew', '--callee-id', 'my-callee', '--input', '{"seconds":1}', '--json'];
      const told = await run(hcp, submit, { cwd: project, env });
      const last = JSON.parse(told.stdout.trimEnd().split('\n').at(-1) ?? '');
      expect(JSON.stringify(last)).toContain('"brewed_seconds":1');

      const { stdout: sessions } = await run(hcp, ['sessions', '--callee-id', 'my-callee'], { cwd: project, env });
      expect(sessions).toMatch(/COMPLETED.*tea\.brew|tea\.brew.*COMPLETED/);
    } finally {
      callee.kill('SIGINT');
      await once(callee, 'exit');
    }
    expect(callee.exitCode).toBe(0);
    const tookMs = performance.now() - begin;
    console.log(`From the package to a completed session: ${(tookMs / 1000).toFixed(1)} s`);
    expect(tookMs).toBeLessThan(MINUTES_5);
  }, 60_000);
});
