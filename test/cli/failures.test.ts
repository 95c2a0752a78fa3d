import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { tellFailure } from '../../cli/failure.ts';
import { HcpError } from '../../shared/errors.ts';
import { runHcp } from '../support/cli.ts';
import { scratchFolder } from '../support/cli-world.ts';

/** The code, and the only line on stderr. */
async function failing(...argv: string[]) {
  const { code, out, err } = await runHcp(argv);
  expect({ out, lines: err.length }).toEqual({ out: [], lines: 1 });
  return { code, err: err[0] };
}

/** A port of this machine where nobody listens. */
async function deadPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

describe('what is typed wrongly', () => {
  it.each([
    [['sesions'], 'There is no command sesions; did you mean sessions?'],
    [['sessions', 'shwo', 'x'], 'There is no command sessions shwo; did you mean sessions show?'],
    [['frobnicate'], 'There is no command frobnicate'],
    [['--json', 'sessions'], undefined],
    [['sessions', 'list', '--stat', 'x'], 'There is no option --stat; did you mean --state?'],
    [['sessions', 'list', '--frobnicate'], 'There is no option --frobnicate'],
    [['sessions', 'list', '--db'], '--db needs a value'],
    [['sessions', 'list', '--db', '--state', 'x'], '--db needs a value'],
    [['sessions', 'list', '--limit', '0'], '--limit must be a number from 1 on'],
    [['sessions', 'show'], 'sessions show takes <session>'],
    [['sessions', 'list', 'x'], 'sessions list takes no arguments'],
    [['sessions', '--callee-id', 'a/b'], undefined],
    [['sessions', '--store', 'http://x'], undefined],
    [['sessions', '--db', 'a', '--amqp', 'amqp://x'], '--db and --amqp exclude each other'],
  ] as const)('is told in one sentence, and ends with 2: hcp %s', async (argv, message) => {
    const { code, err } = await failing(...argv);
    expect(code).toBe(2);
    if (message !== undefined) expect(err).toBe(`hcp: ${message} (hcp --help)`);
  });

  it('is told as JSON when that is wanted', async () => {
    const { code, err } = await failing('sesions', '--json');
    const message = 'There is no command sesions; did you mean sessions?';
    expect({ code, told: JSON.parse(String(err)) }).toEqual({ code: 2, told: { error: { code: 'usage', message } } });
  });
});

describe('what cannot be reached', () => {
  it('is a file that is not there, which looking does not make', async () => {
    const path = join(scratchFolder(), 'none.db');
    for (const command of ['sessions', 'approvals', 'parked']) {
      const { code, err } = await failing(command, '--db', path);
      expect({ code, err }).toEqual({
        code: 3,
        err: `hcp: There is no file ${path}: hcp dev makes one, --db names another`,
      });
    }
    expect(existsSync(path)).toBe(false);
  });

  it('is a file that is no database, or a folder', async () => {
    const folder = scratchFolder();
    const path = join(folder, 'damaged.db');
    writeFileSync(path, 'This is not a database, whatever its name says. '.repeat(100));
    const { code, err } = await failing('sessions', '--db', path);
    const told = `hcp: Cannot open ${path}: the file is damaged or is not an SQLite database`;
    expect({ code, err }).toEqual({ code: 3, err: told });
    expect((await failing('sessions', '--db', folder)).code).toBe(3);
    const json = await failing('sessions', '--db', path, '--json');
    expect(JSON.parse(String(json.err))).toMatchObject({ error: { code: 'store_unsupported' } });
  });

  it('is a database server that is away; its password is not told', async () => {
    const url = `mongodb://ada:hunter2@127.0.0.1:${await deadPort()}/hcp`;
    const { code, err } = await failing('sessions', '--store', url);
    expect(code).toBe(3);
    expect(err).toMatch(/^hcp: .*ECONNREFUSED/);
    expect(err).not.toContain('hunter2');
  });
});

describe('what goes wrong inside', () => {
  const told = (error: unknown, signal = new AbortController().signal) => {
    const lines: string[] = [];
    const io = { out() {}, err: (line: string) => void lines.push(line), env: {}, isTTY: false, signal };
    const read = async () => new Uint8Array();
    return { code: tellFailure(error, { ...io, read }, false), lines };
  };

  it('ends with the code that says what kind of thing it is', () => {
    const code = (error: unknown) => told(error).code;
    expect(code(new HcpError('transport_unreachable', 'x'))).toBe(3);
    expect(code(new HcpError('callee_unreachable', 'x'))).toBe(3);
    expect(code(new HcpError('submit_timeout', 'x'))).toBe(3);
    expect(code(new HcpError('session_unknown', 'x'))).toBe(5);
    expect(code(new HcpError('session_closed', 'x'))).toBe(4);
    expect(code(new HcpError('approval_not_open', 'x', { reason: 'expired' }))).toBe(4);
    expect(code(new HcpError('approval_not_open', 'x', { reason: 'unknown' }))).toBe(5);
    expect(code(new HcpError('session_stalled', 'x'))).toBe(1);
    expect(code(new Error('x'))).toBe(1);
    expect(code('x')).toBe(1);
  });

  it('is one line without credentials, whatever a driver says', () => {
    const { lines } = told(new Error('No way\nto amqp://ada:hunter2@host:5672\u001b[31m'));
    expect(lines).toEqual(['hcp: No way to amqp://[redacted]@host:5672 [31m']);
  });

  it('is what came first, when closing fails because of it', () => {
    const error = Object.assign(new Error('second'), { name: 'SuppressedError', suppressed: new Error('first') });
    expect(told(error).lines).toEqual(['hcp: first']);
  });

  it('is an interruption once Ctrl-C was pressed', () => {
    const { code, lines } = told(new Error('The connection was closed'), AbortSignal.abort());
    expect({ code, lines }).toEqual({ code: 130, lines: ['hcp: Interrupted'] });
    expect(told(AbortSignal.abort().reason).code).toBe(130);
  });
});

describe('the program hcp', () => {
  const MAIN = fileURLToPath(new URL('../../cli/main.ts', import.meta.url));

  async function runProgram(...argv: string[]) {
    const child = spawn(process.execPath, [MAIN, ...argv], { stdio: ['pipe', 'pipe', 'pipe'] });
    const heard = { out: '', err: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (heard.out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (heard.err += text));
    child.stdin.end('{"hcp_version":"1.0"}');
    const [code] = await once(child, 'close');
    return { code, ...heard };
  }

  it('ends with the code, says what it says on the right stream, and reads stdin', async () => {
    expect(await runProgram('--version')).toMatchObject({ code: 0, err: '' });
    const wrong = await runProgram('sesions');
    expect(wrong).toMatchObject({ code: 2, out: '', err: expect.stringMatching(/^hcp: .*\n$/) });
    const invalid = await runProgram('validate', '-');
    expect(invalid).toMatchObject({ code: 1, out: expect.stringMatching(/^-: .* is missing/), err: '' });
  });
});
