import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Callee, type CalleeOptions, createCallee } from '../../callee/index.ts';
import { conformanceCapability } from '../../testing/index.ts';
import { within } from '../../testing/transport-contract/stage.ts';
import type { Stack } from './stacks.ts';

export function freshCalleeId(): string {
  return `lab-${randomBytes(4).toString('hex')}`;
}

/** A started callee that serves every caller of the conformance kit and nobody else. */
export async function serveConformance(
  options: Pick<CalleeOptions, 'calleeId' | 'transport' | 'store' | 'instanceId'>,
): Promise<Callee> {
  const callee = createCallee({
    ...options,
    policy: { callers: ({ callerId }) => (callerId.startsWith('conformance-') ? {} : undefined) },
    abortTimeout: 'PT1S',
    closeTimeoutMs: 500,
  });
  const { declaration, executor, options: more } = conformanceCapability();
  callee.capability(declaration, executor, more);
  await callee.start();
  return callee;
}

export interface ConformanceProcessOptions {
  readonly calleeId: string;
  readonly transportUrl: string;
  readonly storeUrl: string;
}

const START_MS = 60_000;

/** Such a callee in a process of its own, which is started again whenever it ends. */
export class SupervisedCallee implements AsyncDisposable {
  readonly calleeId = freshCalleeId();
  readonly #folder = mkdtempSync(join(tmpdir(), 'hcp-supervised-'));
  readonly #options: ConformanceProcessOptions;
  #child!: ChildProcess;
  #isClosing = false;

  private constructor({ transportUrl, storeUrl }: Pick<Stack, 'transportUrl' | 'storeUrl'>) {
    this.#options = { calleeId: this.calleeId, transportUrl, storeUrl };
  }

  /** Resolves when it takes commands. */
  static async start(stack: Pick<Stack, 'transportUrl' | 'storeUrl'>): Promise<SupervisedCallee> {
    const supervised = new SupervisedCallee(stack);
    supervised.#spawn();
    const { stdout } = supervised.#child;
    if (stdout) await within(START_MS, 'the callee to start', once(stdout, 'data'));
    return supervised;
  }

  get restartCommand(): string {
    return `kill -9 $(cat ${this.#pidFile})`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #pidFile(): string {
    return join(this.#folder, 'pid');
  }

  #spawn(): void {
    const script = fileURLToPath(new URL('conformance-callee-main.ts', import.meta.url));
    const args = [script, JSON.stringify(this.#options)];
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    writeFileSync(this.#pidFile, String(this.#child.pid));
    this.#child.once('exit', () => {
      if (!this.#isClosing) this.#spawn();
    });
  }
}
