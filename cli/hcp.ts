import { parseArgs } from 'node:util';
import type { Call, Command, Io } from './command.ts';
import { COMMANDS } from './commands/index.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { tellFailure } from './failure.ts';
import { familyHelp, helpFor, optionsOf, overview } from './help.ts';
import { didYouMean } from './nearest.ts';
import { UsageError } from './usage-error.ts';
import { packageVersion } from './version.ts';
import { Workplace } from './workplace.ts';

/** The `hcp` command: what it is called with, and what it ends with. Never throws. */
export async function hcp(argv: readonly string[], io: Io): Promise<ExitCode> {
  try {
    const found = findCommand(argv);
    if (found === undefined) return general(argv, io);
    const { command, rest } = found;
    if (asksForHelp(rest)) {
      io.out(helpFor(command));
      return EXIT.ok;
    }
    return await run(command, rest, io);
  } catch (error) {
    return tellFailure(error, io, argv.includes('--json'));
  }
}

/** The longest name that fits: `sessions show` before `sessions`. A family by itself is its list. */
function findCommand(argv: readonly string[]): { command: Command; rest: readonly string[] } | undefined {
  const [first = '', second = '-'] = argv;
  const named = (name: string) => COMMANDS.find((candidate) => candidate.name === name);
  const candidates = [
    { command: named(`${first} ${second}`), words: 2 },
    { command: named(first), words: 1 },
    { command: second.startsWith('-') && !asksForHelp(argv) ? named(`${first} list`) : undefined, words: 1 },
  ];
  for (const { command, words } of candidates) if (command) return { command, rest: argv.slice(words) };
  return undefined;
}

function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end < 0 ? undefined : end).some((word) => word === '--help' || word === '-h');
}

/** Called without a verb, or with one there is not. */
function general(argv: readonly string[], io: Io): ExitCode {
  const [first, second] = argv;
  if (first === '--version') {
    const version = packageVersion();
    io.out(argv.includes('--json') ? JSON.stringify({ version }) : version);
    return EXIT.ok;
  }
  const family = COMMANDS.filter(({ name }) => name.startsWith(`${first} `));
  if (first === undefined || first === '--help' || first === '-h' || (family.length > 0 && asksForHelp(argv))) {
    io.out(family.length > 0 ? familyHelp(family) : overview(COMMANDS));
    return first === undefined ? EXIT.usage : EXIT.ok;
  }
  if (first.startsWith('-')) throw new UsageError(`A command comes before its options, as in hcp sessions ${first}`);
  if (family.length === 0) {
    const names = new Set(COMMANDS.map(({ name }) => name.split(' ')[0] ?? ''));
    throw new UsageError(`There is no command ${first}${didYouMean(first, names)}`);
  }
  const names = family.map(({ name }) => name);
  if (second === undefined || second.startsWith('-'))
    throw new UsageError(`${first} needs one of: ${names.join(', ')}`);
  const typed = `${first} ${second}`;
  throw new UsageError(`There is no command ${typed}${didYouMean(typed, names) || `, but ${names.join(', ')}`}`);
}

async function run(command: Command, rest: readonly string[], io: Io): Promise<ExitCode> {
  const { values, positionals } = parse(command, rest);
  await using workplace = new Workplace(values, io.env);
  const call: Call = { values, positionals, json: values.json === true, io, commands: COMMANDS, workplace };
  return await command.run(call);
}

function parse(command: Command, rest: readonly string[]): Pick<Call, 'values' | 'positionals'> {
  const options = Object.fromEntries(
    Object.entries(optionsOf(command)).map(([name, { type, multiple = false }]) => [name, { type, multiple }]),
  );
  const { values, positionals } = parseWords(rest, options);
  const [least, most] = command.arity ?? [0, 0];
  if (positionals.length < least || positionals.length > most) {
    throw new UsageError(`${command.name} takes ${command.arguments ?? 'no arguments'}`);
  }
  // Each option is a text, a switch, or a list of texts.
  return { values: values as Call['values'], positionals };
}

function parseWords(
  words: readonly string[],
  options: Record<string, { type: 'string' | 'boolean'; multiple: boolean }>,
) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(wrongWord(error instanceof Error ? error.message : String(error), Object.keys(options)));
  }
}

/** Node's own sentence, made clearer where it can be, without its advice on dashes. */
function wrongWord(text: string, names: readonly string[]): string {
  const sentence = text.split(/\.\s/)[0] ?? '';
  const [, unknown] = /^Unknown option '(-[^']*)'/.exec(sentence) ?? [];
  if (unknown !== undefined) {
    const known = names.map((name) => `--${name}`);
    return `There is no option ${unknown}${didYouMean(unknown, known)}`;
  }
  const [, hungry] = /^Option '(--[\w-]+).*' argument (?:missing|is ambiguous)$/.exec(sentence) ?? [];
  return hungry === undefined ? sentence : `${hungry} needs a value`;
}
