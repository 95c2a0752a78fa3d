import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { CalleeOptions } from '../../callee/index.ts';
import type { Capability } from '../../schemas/types.ts';
import { within } from '../../testing/transport-contract/stage.ts';

export type CalleeProcessOptions = Pick<
  CalleeOptions,
  'calleeId' | 'instanceId' | 'leaseMs' | 'prefetch' | 'idleTimeout' | 'approvalTimeout'
> & {
  readonly transportUrl: string;
  readonly storeUrl: string;
  readonly callerId: string;
  /** What is declared otherwise. Every task is as risky as the ceiling. */
  readonly declaration?: Partial<Capability>;
};

const LIMIT_MS = 60_000;

/** A callee in a real process, to be killed. It runs scripted tasks (`scripted.ts`). */
export class CalleeProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #lines: string[] = [];
  readonly #waiting = new Set<() => void>();
  #errors = '';

  constructor(options: CalleeProcessOptions) {
    const script = fileURLToPath(new URL('callee-main.ts', import.meta.url));
    this.#child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#exited = once(this.#child, 'exit').then(() => this.#wake());
    this.#child.stderr?.on('data', (chunk) => {
      this.#errors += chunk;
    });
    if (this.#child.stdout) {
      createInterface(this.#child.stdout).on('line', (line) => {
        this.#lines.push(line);
        this.#wake();
      });
    }
  }

  /** Resolves with the first line that starts so; rejects when the process ends without one. */
  async said(start: string): Promise<string> {
    for (;;) {
      const line = this.#lines.find((candidate) => candidate.startsWith(start));
      if (line !== undefined) return line;
      if (this.#child.exitCode !== null) throw new Error(`The callee ended without "${start}": ${this.#errors}`);
      await within(LIMIT_MS, `the callee to say "${start}": ${this.#errors}`, this.#next());
    }
  }

  /** Recovery is done and commands are taken; answers how many milliseconds that took. */
  async ready(): Promise<number> {
    return Number((await this.said('ready')).split(' ')[1]);
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#child.kill(signal);
    await within(LIMIT_MS, 'the callee to end', this.#exited);
  }

  /** Stands still, or goes on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  get errors(): string {
    return this.#errors;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }
}
