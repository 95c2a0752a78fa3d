import { mkdir, readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { textOf } from '../arguments.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { reaching, writeOutput } from '../files.ts';
import { jsonLine, tame } from '../output.ts';
import { calleeTemplate } from '../templates/callee.ts';
import { callerTemplate } from '../templates/caller.ts';
import { filesOf, type Template } from '../templates/project.ts';
import { UsageError } from '../usage-error.ts';
import { packageVersion } from '../version.ts';

const OPTIONS = {
  sdk: { type: 'string', value: 'SPEC', about: 'what package.json asks of npm: a version, file:… (this version)' },
} as const satisfies Command['options'];

/** Projects to begin with: each runs, and tests itself. */
export const newCommands: readonly Command[] = [
  {
    name: 'new callee',
    summary: 'make a project with a callee, a capability and its test',
    arguments: '<folder>',
    arity: [1, 1],
    options: OPTIONS,
    examples: ['hcp new callee my-callee', 'hcp new callee my-callee --sdk file:../hcp-sdk-0.1.0.tgz'],
    run: (call) => create(call, calleeTemplate),
  },
  {
    name: 'new caller',
    summary: 'make a project with a caller that keeps a ledger, and its test',
    arguments: '<folder>',
    arity: [1, 1],
    options: OPTIONS,
    examples: ['hcp new caller my-caller'],
    run: (call) => create(call, callerTemplate),
  },
];

async function create({ positionals: [folder = ''], values, json, io }: Call, template: Template): Promise<ExitCode> {
  const id = idOf(folder);
  await makeFolder(folder);
  const files = filesOf(template, { id, sdk: textOf(values, 'sdk') ?? `^${packageVersion()}` });
  for (const [path, text] of files) await writeOutput(join(folder, path), text);
  if (json) {
    io.out(jsonLine({ folder, id, files: [...files.keys()] }));
    return EXIT.ok;
  }
  for (const path of files.keys()) io.out(tame(join(folder, path)));
  io.out('Next:');
  for (const step of [`cd ${folder}`, 'npm install', 'npm test', 'npm start']) io.out(`  ${tame(step)}`);
  return EXIT.ok;
}

/** The folder's name, as far as it can be the id of a harness. */
function idOf(folder: string): string {
  const id = basename(resolve(folder))
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 64);
  if (id === '')
    throw new UsageError('The name of the folder needs a letter or digit: it becomes the id of the harness');
  return id;
}

/** Never writes over anything: the folder is new, or empty. */
async function makeFolder(folder: string): Promise<void> {
  await reaching(`Cannot make ${folder}`, () => mkdir(folder, { recursive: true }));
  const found = await reaching(`Cannot read ${folder}`, () => readdir(folder));
  if (found.length > 0) throw new UsageError(`${folder} is not empty`);
}
