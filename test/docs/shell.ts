import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from '../../cli/command.ts';
import { COMMANDS } from '../../cli/commands/index.ts';
import { WORKPLACE_OPTIONS } from '../../cli/workplace.ts';
import { ROOT } from './markdown.ts';

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
const EVERYWHERE = ['json', 'help', ...Object.keys(WORKPLACE_OPTIONS)];

/** What is wrong with a line for the shell, one sentence each: scripts and `hcp` commands that do not exist. */
export function shellFaults(line: string): string[] {
  return line
    .replace(/'[^']*'|"[^"]*"/g, 'quoted')
    .replace(/(^|\s)#.*$/, '')
    .split(/&&|\|\||[|;()]/)
    .map((part) => part.trim().replace(/^\$ /, ''))
    .flatMap((part) => [...scriptFaults(part), ...commandFaults(part)]);
}

function scriptFaults(part: string): string[] {
  const [, name] = /\bnpm run (?:-s |--silent )?([\w:-]+)/.exec(part) ?? [];
  return name === undefined || name in scripts ? [] : [`There is no script ${name}`];
}

function commandFaults(part: string): string[] {
  // Perhaps with settings before it: HCP_DB=a.db npx hcp …
  const [, typed] = /^(?:\w+=\S+ )*(?:npx hcp|hcp|npm run (?:-s |--silent )?hcp --)(?: (.*))?$/.exec(part) ?? [];
  const words = (typed ?? '').split(/\s+/).filter((word) => word !== '');
  const [first = ''] = words;
  // Nothing to look up: no command at all, or one that stands for any, as <command> or ….
  if (!/^[a-z]/.test(first)) return [];
  const command = commandOf(words);
  if (command !== undefined) return optionFaults(command, words);
  // A family by itself: its list, or all of it.
  if (!/^[a-z]/.test(words[1] ?? '') && COMMANDS.some(({ name }) => name.startsWith(`${first} `))) return [];
  return [`There is no command hcp ${words.slice(0, 2).join(' ')}`];
}

/** The longest name that fits. */
function commandOf(words: readonly string[]): Command | undefined {
  const named = (count: number) => COMMANDS.find(({ name }) => name === words.slice(0, count).join(' '));
  return named(2) ?? named(1);
}

function optionFaults({ name, options = {} }: Command, words: readonly string[]): string[] {
  const known = [...EVERYWHERE, ...Object.keys(options)];
  const typed = words.flatMap((word) => /^--([\w-]+)/.exec(word)?.[1] ?? []);
  return typed.filter((option) => !known.includes(option)).map((option) => `hcp ${name} has no option --${option}`);
}
