import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';

const FOLDER = fileURLToPath(new URL('../../docker/', import.meta.url));
const run = promisify(execFile);

interface Model {
  readonly name: string;
  readonly services: Readonly<
    Record<string, { readonly ports: readonly { readonly host_ip: string; readonly target: number }[] }>
  >;
}

/** Compose's own reading of the files: it needs neither an engine nor the images. */
async function config(...files: string[]): Promise<Model> {
  const { stdout } = await run(
    'docker',
    ['compose', ...files.flatMap((f) => ['-f', f]), 'config', '--format', 'json'],
    {
      cwd: FOLDER,
    },
  );
  return JSON.parse(stdout);
}

describe('the compose files', () => {
  let missing: string | undefined;
  beforeAll(async () => {
    await run('docker', ['compose', 'version']).catch(() => {
      missing = 'docker compose is not installed here';
    });
  });

  it.for<[string, string[], number[]]>([
    ['compose.yaml', ['compose.yaml'], [5672, 15672, 27017]],
    ['compose.yaml with compose.tls.yaml', ['compose.yaml', 'compose.tls.yaml'], [5671, 5672, 15672, 27017]],
  ])('%s is valid, and opens its ports on loopback only', async ([, files, expected], { skip }) => {
    if (missing !== undefined) return skip(missing);
    const model = await config(...files);
    const ports = Object.values(model.services).flatMap((service) => service.ports);
    expect(ports.map((port) => port.target).toSorted((a, b) => a - b)).toEqual(expected);
    expect(new Set(ports.map((port) => port.host_ip))).toEqual(new Set(['127.0.0.1']));
    expect(model.name).toBe('hcp');
  });
});
