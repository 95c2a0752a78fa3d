import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './services/processes.ts';

interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** PEM texts made by docker/make-certificates.sh, so that what we ship is what we test. */
export interface Certificates {
  readonly ca: string;
  /** For localhost and 127.0.0.1. */
  readonly server: KeyPair;
  readonly clients: Readonly<Record<string, KeyPair>>;
}

/** A certificate authority of its own, a server and one client per name. Needs openssl. */
export async function makeCertificates(...clients: string[]): Promise<Certificates> {
  const folder = mkdtempSync(join(tmpdir(), 'hcp-certificates-'));
  try {
    const script = join(folder, 'make-certificates.sh');
    copyFileSync(fileURLToPath(new URL('../../docker/make-certificates.sh', import.meta.url)), script);
    for (const name of clients) await run('sh', [script, name], { timeoutMs: 60_000 });
    const pem = (name: string) => readFileSync(join(folder, 'certificates', name), 'utf8');
    const pair = (name: string): KeyPair => ({ cert: pem(`${name}.crt`), key: pem(`${name}.key`) });
    return {
      ca: pem('ca.crt'),
      server: pair('server'),
      clients: Object.fromEntries(clients.map((name) => [name, pair(`client-${name}`)])),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
