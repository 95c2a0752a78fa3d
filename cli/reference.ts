import type { Command, OptionSpec } from './command.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { COMMON_OPTIONS, typedOption, usageOf } from './help.ts';
import { WORKPLACE_OPTIONS } from './workplace.ts';

/** The part of `docs/cli.md` that is made from the table of commands, as Markdown. */
export function cliReference(commands: readonly Command[]): string {
  return [
    '## Commands',
    '',
    ...table(
      ['Command', 'What it does'],
      commands.map(({ name, summary }) => [`[\`hcp ${name}\`](#${anchor(name)})`, summary]),
    ),
    '',
    '## Options of every command',
    '',
    ...optionTable(COMMON_OPTIONS),
    '',
    'Where to work, for every command that needs a server or a file:',
    '',
    ...optionTable(WORKPLACE_OPTIONS),
    '',
    '## Exit codes',
    '',
    ...table(
      ['Code', 'Meaning'],
      EXIT_CODES.map(([code, meaning]) => [`\`${code}\``, meaning]),
    ),
    '',
    '## Reference',
    '',
    ...commands.flatMap(section),
  ].join('\n');
}

function section(command: Command): string[] {
  const { name, summary, options = {}, isOffline = false, examples } = command;
  return [
    `### hcp ${name}`,
    '',
    `\`${usageOf(command)}\`: ${summary}.${isOffline ? ' Needs no server and no file.' : ''}`,
    '',
    ...(Object.keys(options).length > 0 ? [...optionTable(options), ''] : []),
    ...(examples.length > 0 ? ['```sh', ...examples, '```', ''] : []),
  ];
}

function optionTable(options: Readonly<Record<string, OptionSpec>>): string[] {
  return table(
    ['Option', 'Meaning'],
    Object.entries(options).map(([name, spec]) => [`\`${typedOption(name, spec)}\``, spec.about]),
  );
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)];
}

/** As Markdown makes it from the title. */
function anchor(name: string): string {
  return `hcp-${name.replaceAll(' ', '-')}`;
}
