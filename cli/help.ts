import type { Command, OptionSpec } from './command.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { WORKPLACE_OPTIONS } from './workplace.ts';

/** What every command takes. */
export const COMMON_OPTIONS = {
  json: { type: 'boolean', about: 'print JSON and nothing else' },
  help: { type: 'boolean', about: 'tell about the command' },
} as const satisfies Record<string, OptionSpec>;

/** All options of a command, its own first. */
export function optionsOf({ options = {}, isOffline = false }: Command): Readonly<Record<string, OptionSpec>> {
  return { ...options, ...COMMON_OPTIONS, ...(isOffline ? {} : WORKPLACE_OPTIONS) };
}

/** As it is typed: `hcp sessions show <session>`. */
export function usageOf({ name, arguments: behind }: Command): string {
  return `hcp ${name}${behind === undefined ? '' : ` ${behind}`}`;
}

/** An option as it is typed: `--db FILE`. */
export function typedOption(name: string, { value }: OptionSpec): string {
  return `--${name}${value === undefined ? '' : ` ${value}`}`;
}

/** All commands, one line each. */
export function overview(commands: readonly Command[]): string {
  return [
    'hcp: delegate tasks to other harnesses, and follow them',
    '',
    ...summaries(commands),
    '',
    'hcp <command> --help tells more, with examples; hcp help exit-codes what it ends with.',
    'Everywhere: --json, and where to work:',
    ...optionLines(WORKPLACE_OPTIONS),
  ].join('\n');
}

/** The commands that begin with the same word. */
export function familyHelp(commands: readonly Command[]): string {
  return [...summaries(commands), '', 'hcp <command> --help tells more, with examples.'].join('\n');
}

export function helpFor(command: Command): string {
  const { summary, options = {}, isOffline = false, examples } = command;
  return [
    `${usageOf(command)}: ${summary}`,
    '',
    ...optionLines({ ...options, json: COMMON_OPTIONS.json }),
    ...(isOffline ? [] : optionLines(WORKPLACE_OPTIONS)),
    ...(examples.length > 0 ? ['', ...examples.map((example) => `  ${example}`)] : []),
  ].join('\n');
}

export function exitCodeHelp(): string {
  return EXIT_CODES.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join('\n');
}

function summaries(commands: readonly Command[]): string[] {
  const width = Math.max(0, ...commands.map(({ name }) => name.length)) + 2;
  return commands.map(({ name, summary }) => `  hcp ${name.padEnd(width)}${summary}`);
}

function optionLines(options: Readonly<Record<string, OptionSpec>>): string[] {
  return Object.entries(options).map(([name, spec]) => `  ${typedOption(name, spec).padEnd(20)} ${spec.about}`);
}
