import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CliOptions, type CliResult, type RunningHcp, runHcp, startHcp } from './cli.ts';

/** A folder with one file for queues and store, and commands that work there. */
export class DevRoom implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'hcp-cli-'));
  readonly #running = new AsyncDisposableStack();
  readonly #place: readonly string[];

  /** `place`: the options that say where, if it is not the file. */
  constructor(place?: readonly string[]) {
    this.#place = place ?? ['--db', join(this.folder, 'hcp.db')];
  }

  run(argv: readonly string[], options?: CliOptions): Promise<CliResult> {
    return runHcp([...argv, ...this.#place], options);
  }

  start(argv: readonly string[], options?: CliOptions): RunningHcp {
    return this.#running.use(startHcp([...argv, ...this.#place], options));
  }

  /** `hcp dev`, or another callee, once it takes commands. */
  async callee(argv: readonly string[] = ['dev']): Promise<RunningHcp> {
    const callee = this.start(argv);
    await callee.line(/Ctrl-C ends it/);
    return callee;
  }

  /** A task that nobody follows; its session. */
  async detached(inputs: object): Promise<string> {
    const { out } = await this.run(['submit', 'demo.count', '--input', JSON.stringify(inputs), '--detach']);
    return out.join();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.disposeAsync();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
