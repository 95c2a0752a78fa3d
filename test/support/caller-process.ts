import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { within } from '../../testing/transport-contract/stage.ts';
import { Recorder } from './recorder.ts';

export interface CallerProcessOptions {
  readonly transportUrl: string;
  readonly storeUrl: string;
  readonly callerId: string;
  readonly calleeId: string;
  /** Gets a line for each event, when it is handled. */
  readonly file: string;
  /** How many tasks to submit; each is told as `session <id>`. */
  readonly submits: number;
  /** Whose results to wait for; then it says `done`. */
  readonly sessionIds: readonly string[];
  /** Where it kills itself, once. */
  readonly dies?: { readonly when: 'handled' | 'committed'; readonly sequence: number };
}

const LIMIT_MS = 60_000;

/** A caller in a real process, to be killed. */
export class CallerProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines = new Recorder<string>();
  readonly exited: Promise<unknown>;
  #errors = '';

  constructor(options: CallerProcessOptions) {
    const script = fileURLToPath(new URL('caller-main.ts', import.meta.url));
    this.#child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.exited = once(this.#child, 'exit').then(() => this.#lines.add('(ended)'));
    this.#child.stderr?.on('data', (chunk) => {
      this.#errors += chunk;
    });
    if (this.#child.stdout) createInterface(this.#child.stdout).on('line', this.#lines.add);
  }

  /** Resolves with the lines that start so, once there are enough; rejects when the process ends before. */
  async said(start: string, count = 1): Promise<string[]> {
    const found = () => this.#lines.all.filter((line) => line.startsWith(start));
    const enough = this.#lines.until((all) => found().length >= count || all.includes('(ended)'));
    await within(LIMIT_MS, `the caller to say "${start}": ${this.#errors}`, enough);
    if (found().length < count) throw new Error(`The caller ended without "${start}": ${this.#errors}`);
    return found();
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await within(LIMIT_MS, 'the caller to end', this.exited);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill();
  }
}
