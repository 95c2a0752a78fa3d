import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { CalleeOptions } from '../../callee/index.ts';
import { within } from '../../testing/transport-contract/stage.ts';
import { Recorder } from './recorder.ts';
import type { Stack } from './stacks.ts';
import type { World } from './world.ts';

export type GuardProcessOptions = Pick<CalleeOptions, 'calleeId' | 'instanceId'> & {
  readonly transportUrl: string;
  readonly storeUrl: string;
  readonly callerId: string;
  /** What becomes of an emergency procedure; `unknown`: the capability has none. */
  readonly cooling: 'endless' | 'quick' | 'unknown';
};

const LIMIT_MS = 60_000;

/** A furnace in a real process, to be killed. One that comes back continues its sessions at once. */
export class GuardProcess implements AsyncDisposable {
  readonly lines = new Recorder<string>();
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(options: GuardProcessOptions) {
    const script = fileURLToPath(new URL('guard-main.ts', import.meta.url));
    this.#child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#exited = once(this.#child, 'exit');
    if (this.#child.stdout) createInterface(this.#child.stdout).on('line', this.lines.add);
  }

  static async start(
    { transportUrl, storeUrl }: Stack,
    { calleeId, callerId }: World,
    cooling: GuardProcessOptions['cooling'],
  ): Promise<GuardProcess> {
    const furnace = new GuardProcess({ transportUrl, storeUrl, calleeId, callerId, cooling, instanceId: 'one' });
    await furnace.said('ready');
    return furnace;
  }

  async said(line: string): Promise<void> {
    await within(
      LIMIT_MS,
      `the furnace to say "${line}"`,
      this.lines.until((lines) => lines.includes(line)),
    );
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await within(LIMIT_MS, 'the furnace to end', this.#exited);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill();
  }
}
