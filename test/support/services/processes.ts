import { execFile, spawn } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** How to start one server process, as plain data: a test worker starts it again from this after a kill. */
export interface ServerProcess {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of whoever starts it. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Where its pid file and its log are. */
  readonly folder: string;
  readonly port: number;
}

/**
 * Ports nobody listens on. They lie below the ephemeral range: a client that reconnects in a loop to a stopped server
 * inside that range can be given the very port as its own and end up connected to itself.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (await canListen(port)) ports.add(port);
  }
  return [...ports];
}

/** Starts the process detached, so that it outlives the worker that started it; its pid file tells who it is. */
export function launch(server: ServerProcess): void {
  const log = openSync(logFile(server), 'a');
  try {
    const child = spawn(server.command, server.args, {
      cwd: server.cwd,
      env: { ...process.env, ...server.env },
      detached: true,
      stdio: ['ignore', log, log],
    });
    child.on('error', (error) => writeFileSync(logFile(server), `${error.message}\n`, { flag: 'a' }));
    if (child.pid !== undefined) writeFileSync(pidFile(server), String(child.pid));
    child.unref();
  } finally {
    closeSync(log);
  }
}

/** SIGKILLs the process and resolves when it is gone and its port is closed. */
export async function kill(server: ServerProcess): Promise<void> {
  const pid = readPid(pidFile(server));
  if (pid !== undefined) killPid(pid);
  const gone = async () => !(pid !== undefined && isAlive(pid)) && !(await isListening(server.port));
  await poll(gone, { timeoutMs: 20_000, what: `${server.name} to be gone` });
  // A dead process's number may be given to another one: it must not be found again.
  rmSync(pidFile(server), { force: true });
}

/** Asks `probe` until it answers; gives up early when the process has died. The error carries the end of its log. */
export async function untilReady<T>(server: ServerProcess, timeoutMs: number, probe: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      const pid = readPid(pidFile(server));
      const died = pid === undefined || !isAlive(pid);
      if (died || Date.now() > deadline) {
        const what = died ? 'stopped while starting' : `is not ready after ${timeoutMs} ms`;
        throw new Error(`${server.name} ${what}; end of its log:\n${logTail(server)}`, { cause: error });
      }
    }
    await delay(100);
  }
}

/** Resolves when `condition` holds; rejects after the time limit. */
export async function poll(
  condition: () => boolean | Promise<boolean>,
  options: { timeoutMs: number; what: string },
): Promise<void> {
  const deadline = Date.now() + options.timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Waited ${options.timeoutMs} ms for ${options.what}`);
    await delay(50);
  }
}

/** Runs a program to its end and returns what it wrote to stdout; the error carries what it wrote to stderr. */
export function run(
  command: string,
  args: readonly string[],
  options: { env?: Readonly<Record<string, string>>; cwd?: string; timeoutMs: number },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: 64 * 1024 * 1024,
    } as const;
    const child = execFile(command, args, settings, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const said = `${stderr}\n${stdout}`.trim().slice(-1000) || error.message;
      reject(new Error(`${command} ${args[0] ?? ''} failed: ${said}`, { cause: error }));
    });
    child.stdin?.end();
  });
}

/** The program's full path: looked for in `folders`, then on the PATH, then in the folders of system programs. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return [...folders, ...path, '/usr/sbin', '/usr/bin'].map((folder) => join(folder, name)).find(isExecutable);
}

export function readPid(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

export function killPid(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // already gone
  }
}

export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const answer = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => answer(true));
    socket.once('error', () => answer(false));
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie still has its number: in a container whose first process reaps nobody, orphans stay zombies for ever.
    return !/^\d+ \(.*\) Z/s.test(procStat(pid));
  } catch {
    return false;
  }
}

function procStat(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return '';
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port }, () => server.close(() => resolve(true)));
  });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function logTail(server: ServerProcess): string {
  try {
    return readFileSync(logFile(server), 'utf8').slice(-2000);
  } catch {
    return '(no log)';
  }
}

function pidFile(server: ServerProcess): string {
  return join(server.folder, `${server.name}.pid`);
}

function logFile(server: ServerProcess): string {
  return join(server.folder, `${server.name}.log`);
}
