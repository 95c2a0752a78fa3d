import { existsSync, readFileSync } from 'node:fs';

/** The version of the package: its manifest lies above this folder, and above `dist` once that is built. */
export function packageVersion(): string {
  const manifest = ['../package.json', '../../package.json']
    .map((path) => new URL(path, import.meta.url))
    .find((url) => existsSync(url));
  return manifest === undefined ? 'unknown' : String(JSON.parse(readFileSync(manifest, 'utf8')).version);
}
