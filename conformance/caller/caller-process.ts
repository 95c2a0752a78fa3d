import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { scrubUrls } from '../../shared/logger.ts';

const KEPT_STDERR = 2000;

/** One life of the caller under test: a command of the shell, in a process group of its own. */
export class CallerProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #stderr = '';
  #killed = false;

  constructor(command: string, env: NodeJS.ProcessEnv) {
    const stdio: ['ignore', 'ignore', 'pipe'] = ['ignore', 'ignore', 'pipe'];
    this.#child = spawn(command, { shell: true, detached: true, env, stdio });
    this.#child.stderr?.on('data', (chunk) => {
      this.#stderr = `${this.#stderr}${chunk}`.slice(-KEPT_STDERR);
    });
    this.#ended = once(this.#child, 'close').catch(() => {}); // a shell that cannot be started shows by its end
  }

  /** Why nothing more will come of it, if so. */
  get fault(): string | undefined {
    const { exitCode, signalCode } = this.#child;
    if (this.#killed || (exitCode === null && signalCode === null)) return undefined;
    const said = scrubUrls(this.#stderr.trim());
    return `The caller ended by itself (${signalCode ?? `exit code ${exitCode}`}${said === '' ? '' : `: ${said}`})`;
  }

  /** SIGKILL, to the shell and what it started. */
  async kill(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#child;
    this.#killed = true;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // nobody of the group is left
    }
    if (exitCode === null && signalCode === null) await this.#ended;
  }
}
