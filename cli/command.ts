import type { ExitCode } from './exit-codes.ts';
import type { Workplace } from './workplace.ts';

/** What a command is given to speak and listen with. */
export interface Io {
  /** One line on stdout. With `--json`, JSON and nothing else. */
  out(line: string): void;
  /** One line on stderr. */
  err(line: string): void;
  /** All of stdin. */
  read(): Promise<Uint8Array>;
  readonly isTTY: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Fires on Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  /** Of what a value is an example: `URL`, `FILE`. */
  readonly value?: string;
  readonly about: string;
}

/** The options a command was called with; those that were not given are absent. */
export type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface Call {
  readonly values: Values;
  readonly positionals: readonly string[];
  /** Whether to print JSON. */
  readonly json: boolean;
  readonly io: Io;
  /** Every verb there is, for those that tell of them. */
  readonly commands: readonly Command[];
  /** The servers or the file, opened when first asked for and closed at the end. */
  readonly workplace: Workplace;
}

/** One verb. Help, completion and docs are made from these. */
export interface Command {
  /** As it is typed: `submit`, `sessions show`. */
  readonly name: string;
  readonly summary: string;
  /** What stands behind the name: `<session>`, `[<file>|-]`. */
  readonly arguments?: string;
  /** How many positionals, at least and at most. @default [0, 0] */
  readonly arity?: readonly [least: number, most: number];
  readonly options?: Readonly<Record<string, OptionSpec>>;
  /** Needs neither servers nor a file, and takes no options that say where they are. @default false */
  readonly isOffline?: boolean;
  /** Whole lines as one would type them, beginning with `hcp`. */
  readonly examples: readonly string[];
  run(call: Call): Promise<ExitCode>;
}
