import type { Command } from '../command.ts';
import { completionScript, isShell, SHELLS } from '../completion.ts';
import { EXIT } from '../exit-codes.ts';
import { jsonLine } from '../output.ts';
import { UsageError } from '../usage-error.ts';

export const completionCommand: Command = {
  name: 'completion',
  summary: 'what makes a shell complete hcp',
  arguments: SHELLS.join('|'),
  arity: [1, 1],
  isOffline: true,
  examples: [
    'source <(hcp completion bash)',
    'hcp completion zsh > ~/.zfunc/_hcp',
    'hcp completion fish > ~/.config/fish/completions/hcp.fish',
  ],
  async run({ positionals: [shell = ''], commands, json, io }) {
    if (!isShell(shell)) throw new UsageError(`completion is for ${SHELLS.join(', ')}, but not for ${shell}`);
    const script = completionScript(shell, commands);
    io.out(json ? jsonLine({ shell, script }) : script);
    return EXIT.ok;
  },
};
