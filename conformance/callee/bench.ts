import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { parseHarnessId } from '../../shared/ids.ts';
import { Resources } from '../../shared/resources.ts';
import { commandRoute, eventQueue } from '../../shared/transport/topology.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { SkipCheck } from '../check.ts';
import { expectSame, expectThat } from '../wire/expect.ts';
import { at, type Heard, tell } from '../wire/heard.ts';
import { Inbox, type Wanted } from '../wire/inbox.ts';
import { type Changes, type RawMessage, rawMessage } from '../wire/raw.ts';
import { COMPLETE, type Script } from './script.ts';
import { Session } from './session.ts';

export interface CalleeBenchOptions {
  /** Where the implementation is reached. Stays open. */
  readonly transport: Transport;
  /** The implementation under test: it offers `hcp.conformance`. */
  readonly calleeId: string;
  /**
   * The only caller it serves. Its event queue belongs to the kit: it is made and deleted again and again.
   * @default a new one for each check, `conformance-` and ten characters: the implementation must serve all of these
   */
  readonly callerId?: string;
  /** A caller it does not serve. @default what needs one is skipped */
  readonly strangerId?: string;
  /** A shell command that kills the implementation and sees to it that it runs again. @default what needs it is skipped */
  readonly restartCommand?: string;
  /** How long to wait for a message. @default 5000 */
  readonly waitMs?: number;
  /** How long to listen when nothing must be said. @default 150 */
  readonly quietMs?: number;
}

/** A `task_submit` that was sent. */
export interface Submission extends RawMessage {
  readonly messageId: string;
}

export interface SubmitChanges extends Changes {
  readonly messageId?: string;
}

/** What is left over may take this long to end. */
const LEAVE_MS = 1000;
/** A process takes its time to start. */
const RESTART_MS = 15_000;

/** The kit as a caller by hand, against a callee it knows nothing about but the wire. */
export class CalleeBench implements AsyncDisposable {
  readonly calleeId: string;
  readonly callerId: string;
  readonly options: CalleeBenchOptions;
  readonly transport: Transport;
  readonly waitMs: number;
  readonly quietMs: number;
  readonly #inbox = new Inbox();
  readonly #sessions: Session[] = [];
  readonly #resources = new Resources();

  private constructor(options: CalleeBenchOptions, callerId: string) {
    this.options = options;
    this.transport = options.transport;
    this.calleeId = parseHarnessId(options.calleeId, 'calleeId');
    this.callerId = parseHarnessId(callerId, 'callerId');
    this.waitMs = options.waitMs ?? 5000;
    this.quietMs = options.quietMs ?? 150;
  }

  /** Has its queue before anything is said (HCP-201). */
  static async open(options: CalleeBenchOptions, callerId = options.callerId ?? freshCallerId()): Promise<CalleeBench> {
    const bench = new CalleeBench(options, callerId);
    // It loses nothing here, and needs no dead-letter queue that would stay behind.
    const queue = eventQueue(bench.callerId, { profile: 'spec' });
    const consumer = await bench.#inbox.listen(bench.transport, queue);
    bench.#resources.defer(() => bench.transport.remove(queue));
    bench.#resources.use(consumer);
    return bench;
  }

  /** A second caller that is served, if there may be one. */
  otherCallerId(): string {
    if (this.options.callerId !== undefined) throw new SkipCheck('The callee serves only one caller of the kit');
    return freshCallerId();
  }

  /** Another caller on the same callee; closed with this one. */
  async another(callerId = this.otherCallerId()): Promise<CalleeBench> {
    return this.#resources.use(await CalleeBench.open(this.options, callerId));
  }

  /** Everything that arrived, in order, copies included. */
  get arrived(): readonly Heard[] {
    return this.#inbox.all;
  }

  /** A submit of a script, not sent. */
  draft(
    script: Script = [COMPLETE],
    { messageId = randomUUID(), payload, ...changes }: SubmitChanges = {},
  ): Submission {
    const task = { capability: 'hcp.conformance', caller_id: this.callerId, intent: 'Follow the script' };
    const raw = rawMessage({
      type: 'task_submit',
      senderId: this.callerId,
      messageId,
      payload: { ...task, inputs: { script }, ...payload },
      ...changes,
    });
    return { ...raw, messageId };
  }

  /** Sends a submit of a script. */
  async submit(script?: Script, changes?: SubmitChanges): Promise<Submission> {
    const submission = this.draft(script, changes);
    await this.send(submission);
    return submission;
  }

  /** Sends what it is given, whatever it is. */
  async send({ body, properties }: RawMessage): Promise<void> {
    const outcome = await this.transport.publish({ route: commandRoute(this.calleeId), body, properties });
    expectThat(outcome === 'confirmed', `The callee has no queue hcp.cmd.${this.calleeId}: the command was ${outcome}`);
  }

  /** Sends a command about a session, or about what may be one. */
  async command(type: string, sessionId: string | null, payload: object = {}, changes: Changes = {}): Promise<void> {
    const { callerId: senderId } = this;
    await this.send(rawMessage({ type, senderId, sessionId, payload: { ...payload }, ...changes }));
  }

  abort(sessionId: string | null, payload?: object, changes?: Changes): Promise<void> {
    return this.command('abort', sessionId, payload, changes);
  }

  /** The next message, or the next of those wanted. */
  next(wanted: Wanted = { what: 'the next message' }, withinMs = this.waitMs): Promise<Heard> {
    return this.#inbox.take(wanted, withinMs);
  }

  /** The answer to a submit; also one that does not say what it answers, as long as it can be no other. */
  answer({ messageId }: { messageId: string }, withinMs?: number): Promise<Heard> {
    const where = (heard: Heard) => {
      const answered = at(heard, '/payload/in_reply_to');
      return isAnswer(heard) && (answered === undefined || String(answered).toLowerCase() === messageId.toLowerCase());
    };
    return this.next({ what: 'the answer to the submit', where }, withinMs);
  }

  async accepted(submission: Submission, withinMs?: number): Promise<Session> {
    const accepted = await this.answer(submission, withinMs);
    expectThat(
      accepted.type === 'task_accepted',
      `The task was not accepted: ${tell(accepted)} (${at(accepted, '/payload/reason_message')})`,
    );
    const session = new Session({
      submission,
      accepted,
      take: (what, id, within) => this.next({ what, where: ({ sessionId }) => sessionId === id }, within),
      send: (type, sessionId, payload) => this.command(type, sessionId, payload),
    });
    this.#sessions.push(session);
    return session;
  }

  async rejected(submission: Submission, reasonCode?: string): Promise<Heard> {
    const rejected = await this.answer(submission);
    expectSame(rejected.type, 'task_rejected', 'The answer');
    if (reasonCode !== undefined) expectSame(at(rejected, '/payload/reason_code'), reasonCode, 'The reason_code');
    return rejected;
  }

  /** Submits a script and hears that it is accepted. */
  async start(script?: Script, changes?: SubmitChanges): Promise<Session> {
    return this.accepted(await this.submit(script, changes));
  }

  /** Submits a script and hears it out. */
  async run(script?: Script, changes?: SubmitChanges): Promise<Session> {
    return (await this.start(script, changes)).hearOut();
  }

  /** A task there and back: whatever came before it has not stopped the callee. */
  async stillServes(): Promise<void> {
    const session = await this.run();
    expectSame(session.result.type, 'task_completed', 'The result of the task that came next');
  }

  /** Nothing is said but what was heard already: commands are still handled, and then it is quiet for a while. */
  async quiet({ copies = false }: { copies?: boolean } = {}): Promise<void> {
    await this.stillServes();
    await delay(this.quietMs);
    const [said] = this.#inbox.untaken({ copies });
    expectThat(!said, `It said ${said && tell(said)}, where nothing is to be said`);
  }

  /** Ends a check that cannot be tried, before it does anything. */
  needsRestart(): string {
    const { restartCommand } = this.options;
    if (restartCommand === undefined) throw new SkipCheck('It needs a restart command');
    return restartCommand;
  }

  /** Kills the implementation and starts it again; resolves when the command has ended. */
  async restart(): Promise<void> {
    const restartCommand = this.needsRestart();
    const child = spawn(restartCommand, { shell: true, stdio: 'ignore' });
    const [code] = await once(child, 'exit', { signal: AbortSignal.timeout(RESTART_MS) });
    expectSame(code, 0, 'The exit code of the restart command');
  }

  /** How long something may take that waits for a restart. */
  get restartMs(): number {
    return this.waitMs + RESTART_MS;
  }

  /** Leaves nothing running behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#leave();
    } finally {
      await this.#resources[Symbol.asyncDispose]();
    }
  }

  async #leave(): Promise<void> {
    const open = this.#sessions.filter(({ isClosed }) => !isClosed);
    const limitMs = Math.min(LEAVE_MS, this.waitMs);
    const left = open.map(async (session) => {
      await session.abort();
      await session.hearOut(limitMs);
    });
    await Promise.race([Promise.allSettled(left), delay(limitMs, undefined, { ref: false })]);
  }
}

function freshCallerId(): string {
  return `conformance-${randomBytes(5).toString('hex')}`;
}

function isAnswer({ type }: Heard): boolean {
  return type === 'task_accepted' || type === 'task_rejected';
}
