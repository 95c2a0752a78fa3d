import type { Command, OptionSpec } from './command.ts';
import { optionsOf } from './help.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export function isShell(text: string): text is Shell {
  return SHELLS.some((shell) => shell === text);
}

/** The script that makes a shell complete the commands and their options. */
export function completionScript(shell: Shell, commands: readonly Command[]): string {
  return SCRIPTS[shell](commands);
}

const SCRIPTS: Readonly<Record<Shell, (commands: readonly Command[]) => string>> = { bash, zsh, fish };

/** A first word: a command by itself, or a family of several. */
interface Verb {
  readonly word: string;
  readonly about: string;
  readonly family: readonly Command[];
}

function verbsOf(commands: readonly Command[]): Verb[] {
  const words = new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''));
  return [...words].map((word) => {
    const family = commands.filter(({ name }) => name.startsWith(`${word} `));
    const own = commands.find(({ name }) => name === word);
    return { word, family, about: own?.summary ?? family.map((member) => lastWord(member)).join(', ') };
  });
}

function lastWord({ name }: Command): string {
  return name.split(' ').at(-1) ?? '';
}

/** What stands behind the name, where that is one of a few words: `bash|zsh|fish`. */
function choicesOf({ arguments: behind = '' }: Command): string[] {
  return /^\w+(\|\w+)+$/.test(behind) ? behind.split('|') : [];
}

function isPath({ value = '' }: OptionSpec): boolean {
  return ['FILE', 'MODULE', 'FOLDER'].includes(value);
}

/** One word of a shell, whatever it holds. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function bash(commands: readonly Command[]): string {
  const verbs = verbsOf(commands);
  const options = commands.flatMap((command) => Object.entries(optionsOf(command)));
  const named = (isWanted: (spec: OptionSpec) => boolean) => [
    ...new Set(options.filter(([, spec]) => spec.type === 'string' && isWanted(spec)).map(([name]) => `--${name}`)),
  ];
  return [
    '_hcp() {',
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" words="" options=""`,
    '  COMPREPLY=()',
    '  case "$previous" in',
    `    ${named(isPath).join(' | ')}) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;`,
    `    ${named((spec) => !isPath(spec)).join(' | ')}) return ;;`,
    '  esac',
    `  case "$COMP_CWORD \${COMP_WORDS[1]}" in`,
    `    "1 "*) words=${quoted(verbs.map(({ word }) => word).join(' '))} options='--help --version' ;;`,
    ...verbs
      .filter(({ family }) => family.length > 0)
      .map(({ word, family }) => `    ${quoted(`2 ${word}`)}) words=${quoted(family.map(lastWord).join(' '))} ;;`),
    '    *)',
    `      case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in`,
    ...commands.map((command) => {
      const { name } = command;
      const pattern = name.includes(' ') ? quoted(name) : `${quoted(`${name} `)}*`;
      const typed = Object.keys(optionsOf(command)).map((option) => `--${option}`);
      return `        ${pattern}) words=${quoted(choicesOf(command).join(' '))} options=${quoted(typed.join(' '))} ;;`;
    }),
    '      esac ;;',
    '  esac',
    '  if [[ "$current" == -* ]]; then words="$options"; fi',
    '  if [[ -n "$words" ]]; then mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")',
    '  else mapfile -t COMPREPLY < <(compgen -f -- "$current"); fi',
    '}',
    'complete -F _hcp hcp',
  ].join('\n');
}

function zsh(commands: readonly Command[]): string {
  const verbs = verbsOf(commands);
  // A colon ends a word, a bracket a description.
  const plain = (text: string) => text.replace(/[:[\]]/g, '\\$&');
  const described = (word: string, about: string) => quoted(`${plain(word)}:${about}`);
  return [
    '#compdef hcp',
    '_hcp() {',
    '  local -a verbs',
    '  case "$CURRENT $words[2]" in',
    `    "2 "*) verbs=(${verbs.map(({ word, about }) => described(word, about)).join(' ')}) ;;`,
    ...verbs
      .filter(({ family }) => family.length > 0)
      .map(({ word, family }) => {
        const members = family.map((command) => described(lastWord(command), command.summary));
        return `    ${quoted(`3 ${word}`)}) verbs=(${members.join(' ')}) ;;`;
      }),
    '  esac',
    '  if (( $#verbs )); then _describe command verbs; return; fi',
    '  case "$words[2] $words[3]" in',
    ...commands.map((command) => {
      const { name } = command;
      const pattern = name.includes(' ') ? quoted(name) : `${quoted(`${name} `)}*`;
      const specs = Object.entries(optionsOf(command)).map(([option, spec]) => {
        const value = spec.type === 'boolean' ? '' : `:${plain(spec.value ?? 'value')}:${isPath(spec) ? '_files' : ''}`;
        return quoted(`--${option}[${plain(spec.about)}]${value}`);
      });
      const choices = choicesOf(command);
      const behind = choices.length > 0 ? `*:argument:(${choices.join(' ')})` : '*:argument:_files';
      return `    ${pattern}) _arguments ${[...specs, quoted(behind)].join(' ')} ;;`;
    }),
    '  esac',
    '}',
    // Loaded from a folder of functions, the file is the function; sourced, it only registers it.
    'if [ "$funcstack[1]" = "_hcp" ]; then _hcp "$@"; else compdef _hcp hcp; fi',
  ].join('\n');
}

function fish(commands: readonly Command[]): string {
  const line = (when: string, what: string, about: string) =>
    `complete -c hcp -n ${fishQuoted(when)} ${what} -d ${fishQuoted(about)}`;
  const seen = (word: string) => `__fish_seen_subcommand_from ${word}`;
  return [
    ...verbsOf(commands).flatMap(({ word, about, family }) => {
      const members = family.map(lastWord).join(' ');
      const isOpen = `${seen(word)}; and not ${seen(members)}`;
      return [
        line('__fish_use_subcommand', `-f -a ${word}`, about),
        ...family.map((command) => line(isOpen, `-f -a ${lastWord(command)}`, command.summary)),
      ];
    }),
    ...commands.flatMap((command) => {
      const isChosen = command.name.split(' ').map(seen).join('; and ');
      const choices = choicesOf(command);
      return [
        ...choices.map((choice) => line(isChosen, `-f -a ${choice}`, command.summary)),
        ...Object.entries(optionsOf(command)).map(([option, spec]) => {
          const value = spec.type === 'boolean' ? '' : isPath(spec) ? ' -r -F' : ' -x';
          return line(isChosen, `-l ${option}${value}`, spec.about);
        }),
      ];
    }),
  ].join('\n');
}

function fishQuoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`;
}
