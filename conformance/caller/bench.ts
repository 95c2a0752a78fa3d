import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandQueue, deadLetterQueue, eventQueue } from '../../shared/transport/topology.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { CallerProcess } from './caller-process.ts';
import { type HeardCommand, PlayedCallee } from './played-callee.ts';
import { PlayedSession } from './played-session.ts';
import { ReportFile } from './report-file.ts';
import { until } from './until.ts';

export interface CallerBenchOptions {
  /** To the broker the caller under test uses, too. */
  readonly transport: Transport;
  /** Starts the caller under test, by the shell. */
  readonly command: string;
  /** Its environment, with what tells it where the broker is; the rest is added. */
  readonly env: NodeJS.ProcessEnv;
  /** What the ids of the played callee begin with. @default 'conformance' */
  readonly calleeId?: string;
  /** What the ids of the caller under test begin with. @default 'conformance' */
  readonly callerId?: string;
  /** How long to wait for anything the caller under test should do. @default 10000 */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

/** How the caller under test is set. Where a check does not care, no timer of its rings. */
export interface CallerTimes {
  readonly submits?: number;
  readonly calleeId?: string;
  readonly submitTimeoutMs?: number;
  readonly submitTries?: number;
  readonly gapHoldMs?: number;
  readonly graceMs?: number;
}

const NEVER_MS = 600_000;

/** One caller under test, one played callee, with names of their own. */
export class CallerBench implements AsyncDisposable {
  readonly callee: PlayedCallee;
  readonly callerId: string;
  readonly report: ReportFile;
  readonly #options: CallerBenchOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), 'hcp-conformance-'));
  #process: CallerProcess | undefined;
  #times: CallerTimes = {};
  #taken = 0;

  constructor(options: CallerBenchOptions) {
    const { transport, calleeId = 'conformance', callerId = 'conformance' } = options;
    this.#options = options;
    this.callerId = fresh(callerId);
    this.callee = new PlayedCallee(transport, fresh(calleeId), this.callerId);
    this.report = new ReportFile(join(this.#folder, 'report.jsonl'));
  }

  /** Starts the caller under test. */
  start(times: CallerTimes = {}): void {
    const { submits = 1, calleeId = this.callee.calleeId } = times;
    this.#times = times;
    this.#process = new CallerProcess(this.#options.command, {
      ...this.#options.env,
      HCP_CALLER_ID: this.callerId,
      HCP_CALLEE_ID: calleeId,
      HCP_CONFORMANCE_FILE: this.report.path,
      HCP_SUBMITS: String(submits),
      HCP_SUBMIT_TIMEOUT_MS: String(times.submitTimeoutMs ?? NEVER_MS),
      HCP_SUBMIT_TRIES: String(times.submitTries ?? 5),
      HCP_GAP_HOLD_MS: String(times.gapHoldMs ?? NEVER_MS),
      HCP_GRACE_MS: String(times.graceMs ?? NEVER_MS),
    });
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** A new life, which submits nothing and takes up what there is. */
  revive(): void {
    this.start({ ...this.#times, submits: 0 });
  }

  async restart(): Promise<void> {
    await this.kill();
    this.revive();
  }

  /** The next command of this type. Others must not come before it. */
  async command(type: 'task_submit' | 'abort'): Promise<HeardCommand> {
    const next = await this.until(
      () => `a command of type ${type}`,
      () => this.callee.heard[this.#taken],
    );
    this.#taken++;
    if (next.type !== type) throw new Error(`The caller should have sent ${type}, and sent ${next.type}`);
    return next;
  }

  /** Starts the caller under test with one task, accepts it, and says nothing more. */
  async accepted(times?: CallerTimes, more?: object): Promise<PlayedSession> {
    this.start(times);
    return this.accept(await this.command('task_submit'), more);
  }

  async accept({ message }: HeardCommand, more?: object): Promise<PlayedSession> {
    const sessionId = randomUUID();
    await this.callee.accept(sessionId, message.message_id, more);
    return new PlayedSession(this, sessionId);
  }

  /** Starts the caller under test with one task, which runs: E1 and E2 are told. */
  async running(times?: CallerTimes, more?: object): Promise<PlayedSession> {
    return (await this.accepted(times, more)).begin();
  }

  /** The same with two tasks. */
  async twoRunning(times?: CallerTimes): Promise<[PlayedSession, PlayedSession]> {
    this.start({ ...times, submits: 2 });
    const one = await this.accept(await this.command('task_submit'));
    const other = await this.accept(await this.command('task_submit'));
    return [await one.begin(), await other.begin()];
  }

  /** A session nobody asked for. */
  stranger(): PlayedSession {
    return new PlayedSession(this, randomUUID());
  }

  until<T>(what: () => string, look: () => T | undefined): Promise<T> {
    const { waitMs = 10_000, signal } = this.#options;
    return until(what, look, { waitMs, signal, fault: () => this.#process?.fault });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.callee[Symbol.asyncDispose]();
    const { transport } = this.#options;
    const events = eventQueue(this.callerId);
    await transport.remove(events);
    for (const queue of [events, commandQueue(this.callee.calleeId)]) await transport.remove(deadLetterQueue(queue));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A bench for one check. The caller under test is started by the check. */
export async function openCallerBench(options: CallerBenchOptions): Promise<CallerBench> {
  const bench = new CallerBench(options);
  await bench.callee.listen();
  return bench;
}

function fresh(prefix: string): string {
  return `${prefix}-${randomBytes(4).toString('hex')}`;
}
