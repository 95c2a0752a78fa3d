/** `npm run example -- <name>`: runs one of the stories under examples/ against the built package. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const EXAMPLES = fileURLToPath(new URL('../examples/', import.meta.url));

/** A story whose caller is a process of its own, to be killed, has a `demo.ts` that tells it. */
function entryOf(name: string): string | undefined {
  return ['demo.ts', 'caller.ts'].map((file) => `${EXAMPLES}${name}/${file}`).find((path) => existsSync(path));
}

const names = readdirSync(EXAMPLES).filter((name) => entryOf(name) !== undefined);
const [name = ''] = process.argv.slice(2);
const entry = names.includes(name) ? entryOf(name) : undefined;
if (entry === undefined) {
  console.error(`Usage: npm run example -- <name>, one of ${names.join(', ')}`);
  process.exitCode = 2;
} else {
  const [code] = await once(spawn(process.execPath, [entry], { stdio: 'inherit' }), 'exit');
  process.exitCode = code ?? 1;
}
