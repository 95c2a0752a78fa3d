import type { Command } from '../command.ts';
import { EXIT, EXIT_CODES } from '../exit-codes.ts';
import { exitCodeHelp, familyHelp, helpFor, optionsOf, overview, usageOf } from '../help.ts';
import { didYouMean } from '../nearest.ts';
import { jsonLine } from '../output.ts';
import { UsageError } from '../usage-error.ts';

export const helpCommand: Command = {
  name: 'help',
  summary: 'tell about a command, or what the exit codes mean',
  arguments: '[<command>|exit-codes]',
  arity: [0, 2],
  isOffline: true,
  examples: ['hcp help', 'hcp help sessions show', 'hcp help exit-codes'],
  async run({ positionals, commands, json, io }) {
    const topic = positionals.join(' ');
    if (topic === 'exit-codes') {
      io.out(json ? jsonLine(EXIT_CODES.map(([code, meaning]) => ({ code, meaning }))) : exitCodeHelp());
      return EXIT.ok;
    }
    const about = commands.filter(({ name }) => topic === '' || name === topic || name.startsWith(`${topic} `));
    const [first, ...others] = about;
    if (first === undefined) {
      const topics = [...commands.map(({ name }) => name), 'exit-codes'];
      throw new UsageError(`There is no command ${topic}${didYouMean(topic, topics)}`);
    }
    if (json) io.out(jsonLine(about.map(commandJson)));
    else io.out(topic === '' ? overview(commands) : others.length > 0 ? familyHelp(about) : helpFor(first));
    return EXIT.ok;
  },
};

function commandJson(command: Command): object {
  const { name, summary, examples } = command;
  const options = Object.entries(optionsOf(command)).map(([option, { type, value, about }]) => {
    return { name: option, type, value, about };
  });
  return { name, summary, usage: usageOf(command), options, examples };
}
