import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runHcp, startHcp } from '../support/cli.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hcp-new-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const manifestOf = (project: string) => JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));

describe('hcp new', () => {
  it.each(['callee', 'caller'])('%s makes a project whose tests pass', async (kind) => {
    const project = join(folder, `my-${kind}`);
    const { code, out } = await runHcp(['new', kind, project]);
    expect(code).toBe(0);
    expect(out.slice(-4)).toEqual([`  cd ${project}`, '  npm install', '  npm test', '  npm start']);
    expect(manifestOf(project)).toMatchObject({ name: `my-${kind}`, dependencies: { 'hcp-sdk': `^${version}` } });

    mkdirSync(join(project, 'node_modules'));
    symlinkSync(ROOT, join(project, 'node_modules', 'hcp-sdk'));
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter', 'tap'], { cwd: project });
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(stdout).toMatch(/^# pass [1-9]/m);
  });

  it('caller works with hcp dev on one file, and has every event once', async () => {
    const project = join(folder, 'my-caller');
    const db = join(folder, 'hcp.db');
    await runHcp(['new', 'caller', project]);
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(ROOT, join(project, 'node_modules', 'hcp-sdk'));
    await using dev = startHcp(['dev', '--db', db]);
    await dev.line(/^Callee dev/);
    const argv = ['caller.mjs', 'demo.count', '{"to":3,"delay_ms":0}'];
    const { stdout } = await run(process.execPath, argv, {
      cwd: project,
      env: { ...process.env, HCP_DB: db, HCP_AMQP_URL: '', HCP_STORE_URL: '' },
    });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.pop()).toBe('completed { counted: 3 }');
    expect(lines.map((line) => Number(line.slice(0, 4)))).toEqual(lines.map((_, index) => index + 1));
    expect(lines.filter((line) => line.includes('progress')).map((line) => line.at(-1))).toEqual(['1', '2', '3']);
  });

  it('says in its README how to run it, in three commands', async () => {
    const project = join(folder, 'lab');
    await runHcp(['new', 'callee', project]);
    const readme = readFileSync(join(project, 'README.md'), 'utf8');
    expect(readme).toMatch(/^# lab\n/);
    expect(readme).toContain('\n    npm install\n    npm test\n    npm start\n');
    expect(readme).not.toContain('{{');
  });

  it('tells what it made, as JSON', async () => {
    const project = join(folder, 'lab');
    const { code, out } = await runHcp(['new', 'callee', project, '--sdk', 'file:../hcp-sdk.tgz', '--json']);
    expect(code).toBe(0);
    const { files, ...rest } = JSON.parse(out.join('\n'));
    expect(rest).toEqual({ folder: project, id: 'lab' });
    expect([...files].sort()).toEqual(readdirSync(project).sort());
    expect(manifestOf(project).dependencies).toEqual({ 'hcp-sdk': 'file:../hcp-sdk.tgz' });
  });

  it('makes an id of whatever the folder is called', async () => {
    const { out } = await runHcp(['new', 'caller', join(folder, '.My Caller 2!'), '--json']);
    expect(JSON.parse(out[0] ?? '').id).toBe('My-Caller-2');
    const { code, err } = await runHcp(['new', 'caller', join(folder, '…')]);
    expect([code, err[0]]).toEqual([2, expect.stringContaining('needs a letter or digit')]);
  });

  it('takes an empty folder, and refuses one with something in it, or a file', async () => {
    expect((await runHcp(['new', 'callee', folder])).code).toBe(0);
    const before = readdirSync(folder);
    const again = await runHcp(['new', 'caller', folder]);
    expect([again.code, again.err]).toEqual([2, [expect.stringMatching(/^hcp: .* is not empty/)]]);
    expect(readdirSync(folder)).toEqual(before);

    writeFileSync(join(folder, 'file'), '');
    const file = await runHcp(['new', 'callee', join(folder, 'file')]);
    expect([file.code, file.err.length]).toEqual([3, 1]);
  });
});
