import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { schemas } from '../../schemas/index.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { reaching, writeOutput } from '../files.ts';
import { didYouMean } from '../nearest.ts';
import { jsonLine, table } from '../output.ts';
import { UsageError } from '../usage-error.ts';

const list: Command = {
  name: 'schemas list',
  summary: 'the JSON Schemas of the protocol',
  isOffline: true,
  examples: ['hcp schemas list'],
  async run({ json, io }) {
    const all = Object.entries(schemas).map(([name, { description }]) => ({ name, description }));
    if (json) io.out(jsonLine(all));
    else for (const line of table(all.map(({ name, description }) => [name, description]))) io.out(line);
    return EXIT.ok;
  },
};

const print: Command = {
  name: 'schemas print',
  summary: 'one of the JSON Schemas',
  arguments: '<name>',
  arity: [1, 1],
  isOffline: true,
  examples: ['hcp schemas print task_submit', 'hcp schemas print event:progress'],
  async run({ positionals: [name = ''], json, io }) {
    const schema = new Map<string, object>(Object.entries(schemas)).get(name);
    if (schema === undefined) {
      throw new UsageError(`There is no schema ${name}${didYouMean(name, Object.keys(schemas))}`);
    }
    io.out(json ? JSON.stringify(schema) : JSON.stringify(schema, null, 2));
    return EXIT.ok;
  },
};

const write: Command = {
  name: 'schemas write',
  summary: 'all JSON Schemas as files of a folder',
  arguments: '<folder>',
  arity: [1, 1],
  isOffline: true,
  examples: ['hcp schemas write ./hcp-schemas'],
  async run({ positionals: [folder = ''], json, io }) {
    const files: string[] = [];
    for (const [name, schema] of Object.entries(schemas)) {
      const path = join(folder, fileOf(name));
      await reaching(`Cannot write ${path}`, () => mkdir(dirname(path), { recursive: true }));
      await writeOutput(path, `${JSON.stringify(schema, null, 2)}\n`);
      files.push(path);
    }
    io.out(json ? jsonLine({ files }) : `${files.length} schemas written to ${folder}`);
    return EXIT.ok;
  },
};

export const schemasCommands: readonly Command[] = [list, print, write];

/** Laid out as in the package: `event:log` is `events/log.schema.json`. */
function fileOf(name: string): string {
  return `${name.replace(/^event:/, 'events/')}.schema.json`;
}
