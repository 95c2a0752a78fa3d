import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../cli/commands/index.ts';
import { EXIT } from '../../cli/exit-codes.ts';
import { CLI_DOC, withReference } from '../../scripts/cli-reference.ts';
import { runHcp } from '../support/cli.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

describe('hcp help', () => {
  it('lists all commands, also for --help and for nothing at all', async () => {
    for (const [argv, exit] of [[['help'], 0] as const, [['--help'], 0] as const, [[], 2] as const]) {
      const { code, out } = await runHcp(argv);
      expect(code).toBe(exit);
      for (const { name } of COMMANDS) expect(out.join('\n')).toMatch(new RegExp(`^  hcp ${name} `, 'm'));
      expect(out.join('\n')).toContain(COMMANDS[0]?.summary);
    }
  });

  it('tells of each command: how it is typed, its options, an example that begins with its name', async () => {
    for (const { name, options = {}, examples, summary } of COMMANDS) {
      const { code, out } = await runHcp([...name.split(' '), '--help']);
      const text = out.join('\n');
      expect(code, name).toBe(0);
      expect(text).toMatch(new RegExp(`^hcp ${name}\\b.*: `));
      expect(text).toContain(summary);
      for (const option of Object.keys(options)) expect(text).toContain(`--${option}`);
      expect(
        examples.some((example) => example.includes(`hcp ${name}`)),
        `${name} has an example`,
      ).toBe(true);
      expect((await runHcp(['help', ...name.split(' ')])).out).toEqual(out);
    }
  });

  it('tells of a family', async () => {
    const { out } = await runHcp(['sessions', '--help']);
    expect(out.join('\n')).toMatch(/^ {2}hcp sessions list .*\n {2}hcp sessions show /);
    expect((await runHcp(['help', 'sessions'])).out).toEqual(out);
  });

  it('tells what the exit codes mean, all of them', async () => {
    const { out } = await runHcp(['help', 'exit-codes']);
    const codes = out
      .join('\n')
      .match(/^ +\d+/gm)
      ?.map(Number);
    expect(codes).toEqual(Object.values(EXIT));
    expect(Object.values(EXIT)).toEqual([0, 1, 2, 3, 4, 5, 130]);
  });

  it('is also there as JSON', async () => {
    const { out } = await runHcp(['help', '--json']);
    const told: { name: string }[] = JSON.parse(out.join());
    expect(told.map(({ name }) => name)).toEqual(COMMANDS.map(({ name }) => name));
    const { out: codes } = await runHcp(['help', 'exit-codes', '--json']);
    expect(JSON.parse(codes.join())).toContainEqual({ code: 2, meaning: 'wrong arguments' });
  });

  it('knows the version', async () => {
    expect((await runHcp(['--version'])).out).toEqual([version]);
    expect((await runHcp(['--version', '--json'])).out).toEqual([JSON.stringify({ version })]);
  });

  it('is what docs/cli.md says (node scripts/cli-reference.ts writes it)', () => {
    const document = readFileSync(CLI_DOC, 'utf8');
    expect(document).toBe(withReference(document));
    for (const { name } of COMMANDS) expect(document).toContain(`### hcp ${name}\n`);
  });

  it('has no two commands of one name', () => {
    const names = COMMANDS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
