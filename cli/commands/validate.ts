import type { SchemaName } from '../../shared/messages/validators.ts';
import { textOf } from '../arguments.ts';
import type { Call, Command } from '../command.ts';
import { examine, type Finding, SCHEMA_NAMES } from '../document.ts';
import { EXIT } from '../exit-codes.ts';
import { readInput } from '../files.ts';
import { didYouMean } from '../nearest.ts';
import { jsonLine, paint, tame } from '../output.ts';
import { UsageError } from '../usage-error.ts';

export const validateCommand: Command = {
  name: 'validate',
  summary: 'whether messages, capabilities, envelopes … fit their schemas',
  arguments: '<file>|- …',
  arity: [1, Number.POSITIVE_INFINITY],
  isOffline: true,
  options: { schema: { type: 'string', value: 'NAME', about: 'which schema (told from the content)' } },
  examples: ['hcp validate task.json capability.json', 'hcp validate - --schema event:progress < data.json'],
  async run({ values, positionals, json, io }) {
    const schema = schemaNamed(textOf(values, 'schema'));
    const results: (Finding & { readonly file: string })[] = [];
    for (const file of positionals) results.push({ file, ...examine(await readInput(file, io), schema) });
    if (json) io.out(jsonLine(results.map(({ file, schema, fault }) => ({ file, schema, valid: !fault, fault }))));
    else for (const result of results) for (const line of lines(result, io)) io.out(line);
    return results.every(({ fault }) => fault === undefined) ? EXIT.ok : EXIT.failed;
  },
};

/** The schema of that name. Throws {@link UsageError} when there is none. */
export function schemaNamed(name: string): SchemaName;
export function schemaNamed(name: string | undefined): SchemaName | undefined;
export function schemaNamed(name: string | undefined): SchemaName | undefined {
  if (name === undefined) return undefined;
  const found = SCHEMA_NAMES.find((known) => known === name);
  if (found === undefined) throw new UsageError(`There is no schema ${name}${didYouMean(name, SCHEMA_NAMES)}`);
  return found;
}

function lines({ file, schema, fault }: Finding & { readonly file: string }, io: Call['io']): string[] {
  if (fault === undefined) return [paint(io, 'green', `${file}: valid ${schema}`)];
  const what = schema === undefined ? '' : ` (${schema})`;
  return [paint(io, 'red', `${file}: ${tame(fault.message)}${what}`), `  ${fault.advice}`];
}
