import { setTimeout as delay } from 'node:timers/promises';
import type { Io } from '../../cli/command.ts';
import { hcp } from '../../cli/hcp.ts';
import { Recorder } from './recorder.ts';

export interface CliOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** @default false */
  readonly isTTY?: boolean;
}

export interface CliResult {
  readonly code: number;
  readonly out: string[];
  readonly err: string[];
}

/** A command that runs until it ends by itself or is stopped. */
export interface RunningHcp extends AsyncDisposable {
  readonly out: Recorder<string>;
  readonly err: Recorder<string>;
  readonly ended: Promise<CliResult>;
  /** The first line on stdout that fits; rejects when the command ends without one. */
  line(pattern: RegExp): Promise<string>;
  /** Ctrl-C. */
  stop(): Promise<CliResult>;
}

/** Runs `hcp` in this process, its output captured. */
export function runHcp(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return startHcp(argv, options).ended;
}

export function startHcp(argv: readonly string[], options: CliOptions = {}): RunningHcp {
  const { stdin = '', env = {}, isTTY = false } = options;
  const ctrlC = new AbortController();
  const [out, err] = [new Recorder<string>(), new Recorder<string>()];
  const io: Io = {
    out: out.add,
    err: err.add,
    read: async () => Buffer.from(stdin),
    isTTY,
    env,
    signal: options.signal ? AbortSignal.any([options.signal, ctrlC.signal]) : ctrlC.signal,
  };
  const ended = hcp(argv, io).then((code) => ({ code, out: out.all, err: err.all }));
  return {
    out,
    err,
    ended,
    async line(pattern) {
      const find = () => out.all.find((line) => pattern.test(line));
      const found = await Promise.race([out.until(() => find() !== undefined).then(find), ended.then(find)]);
      if (found === undefined) throw new Error(`No line like ${pattern}, but: ${[...out.all, ...err.all].join('\n')}`);
      return found;
    },
    stop() {
      ctrlC.abort();
      return ended;
    },
    async [Symbol.asyncDispose]() {
      ctrlC.abort();
      // A command that does not stop must not keep the test from saying why.
      await Promise.race([ended, delay(10_000, undefined, { ref: false })]);
    },
  };
}
