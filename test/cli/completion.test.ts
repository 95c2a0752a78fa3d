import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../cli/commands/index.ts';
import { SHELLS } from '../../cli/completion.ts';
import { runHcp } from '../support/cli.ts';
import { scratchFolder } from '../support/cli-world.ts';

async function scriptFor(shell: string): Promise<string> {
  const { code, out } = await runHcp(['completion', shell]);
  expect(code).toBe(0);
  return out.join('\n');
}

describe('hcp completion', () => {
  it.each(SHELLS)('tells %s every command and every option of its own', async (shell) => {
    const script = await scriptFor(shell);
    for (const { name, options = {} } of COMMANDS) {
      for (const word of name.split(' ')) expect(script).toContain(word);
      for (const option of Object.keys(options)) {
        expect(script).toContain(shell === 'fish' ? `-l ${option}` : `--${option}`);
      }
    }
  });

  it('is for these shells only', async () => {
    const { code, err } = await runHcp(['completion', 'tcsh']);
    expect({ code, err }).toEqual({
      code: 2,
      err: ['hcp: completion is for bash, zsh, fish, but not for tcsh (hcp --help)'],
    });
  });

  describe('in bash', () => {
    let script = '';
    beforeAll(async () => {
      script = await scriptFor('bash');
    });

    /** What bash offers behind these words, the last of which is being typed. */
    function offered(...words: string[]): string[] {
      const folder = scratchFolder();
      writeFileSync(join(folder, 'completion.bash'), script);
      writeFileSync(join(folder, 'task.json'), '{}');
      const ask = `source ./completion.bash
        complete -p hcp >/dev/null || exit 1
        COMP_WORDS=(hcp "$@"); COMP_CWORD=$#; _hcp; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const told = execFileSync('bash', ['--norc', '-c', ask, 'bash', ...words], { cwd: folder, encoding: 'utf8' });
      return told.split('\n').filter((line) => line !== '');
    }

    it('is a script bash can read', () => {
      const path = join(scratchFolder(), 'completion.bash');
      writeFileSync(path, script);
      execFileSync('bash', ['-n', path]);
    });

    it('completes the first word', () => {
      expect(offered('sess')).toEqual(['sessions']);
      expect(offered('')).toEqual(expect.arrayContaining(['sessions', 'validate', 'help']));
      expect(offered('--v')).toEqual(['--version']);
    });

    it('completes the second word of a family', () => {
      expect(offered('approvals', '')).toEqual(['list', 'approve', 'deny']);
      expect(offered('sessions', 's')).toEqual(['show']);
    });

    it('completes the options of a command, and of no other', () => {
      expect(offered('sessions', 'list', '--st')).toEqual(['--state', '--store']);
      expect(offered('validate', '--')).toEqual(['--schema', '--json', '--help']);
    });

    it('completes files where a file is wanted, and choices where there are some', () => {
      expect(offered('validate', 'ta')).toEqual(['task.json']);
      expect(offered('export', 'some-session', '--out', 'ta')).toEqual(['task.json']);
      expect(offered('sessions', 'list', '--state', '')).toEqual([]);
      expect(offered('completion', '')).toEqual(['bash', 'zsh', 'fish']);
    });
  });
});
