import { randomBytes } from 'node:crypto';
import { type Caller, type CallerOptions, createCaller, type Session, type Task } from '../../caller/index.ts';
import type { HcpError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/logger.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Row, Store } from '../../shared/store/store.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { within } from '../../testing/transport-contract/stage.ts';
import { LEDGER_TABLES } from './ledger.ts';
import { ScriptedCallee } from './scripted-callee.ts';
import type { Stack } from './stacks.ts';
import { recordingLogger } from './world.ts';

export const DO_IT: Task = { capability: 'test.task', intent: 'Do it', inputs: {} };

const WAIT_MS = 20_000;

/** A manual clock that waits for a timer to be set before it lets it ring. */
export class RingingClock extends ManualClock {
  readonly #pending = new Map<number, number>();
  #wake: () => void = () => {};

  override setTimeout(callback: () => void, delayMs: number): number {
    const timer = super.setTimeout(() => {
      this.#pending.delete(timer);
      callback();
    }, delayMs);
    this.#pending.set(timer, delayMs);
    this.#wake();
    return timer;
  }

  override clearTimeout(timer: unknown): void {
    this.#pending.delete(timer as number);
    super.clearTimeout(timer);
  }

  has(delayMs: number): boolean {
    return [...this.#pending.values()].includes(delayMs);
  }

  /** Resolves when a timer of just this length is set. */
  async armed(delayMs: number): Promise<void> {
    while (!this.has(delayMs)) {
      const set = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await within(WAIT_MS, `a timer of ${delayMs} ms; set are ${[...this.#pending.values()]}`, set);
    }
  }

  /** Moves on by a timer's length, once it is set. */
  async ring(delayMs: number): Promise<void> {
    await this.armed(delayMs);
    this.advance(delayMs);
  }
}

/** Times that differ, so that a test can tell which timer it lets ring. */
export const TIMES = { submitTimeoutMs: 1001, gapHoldMs: 2002, graceMs: 4004, replayTimeoutMs: 8008 } as const;

/** What a caller tells, awaited one by one. */
export class Told {
  readonly all: string[] = [];
  readonly #waiting: (() => void)[] = [];

  add(what: string): void {
    this.all.push(what);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves when it has been told. */
  until(what: string): Promise<void> {
    return this.#wait(`"${what}"`, () => this.all.includes(what));
  }

  /** Resolves when so much has been told. */
  count(least: number): Promise<void> {
    return this.#wait(`${least} things to be told`, () => this.all.length >= least);
  }

  async #wait(what: string, isDone: () => boolean): Promise<void> {
    while (!isDone()) {
      const more = new Promise<void>((resolve) => this.#waiting.push(resolve));
      await within(WAIT_MS, `${what}; told so far: ${this.all.join(', ')}`, more);
    }
  }
}

/** A real caller and a callee by hand, with ids of their own on a stack. */
export class CallerRoom implements AsyncDisposable {
  readonly callerId = `alpha-${randomBytes(4).toString('hex')}`;
  readonly calleeId = `lab-${randomBytes(4).toString('hex')}`;
  readonly clock = new RingingClock();
  readonly told = new Told();
  readonly lines: string[];
  readonly logger: Logger;
  readonly stack: Stack;
  readonly #resources = new AsyncDisposableStack();
  store!: Store;
  /** Listens already. */
  callee!: ScriptedCallee;

  private constructor(stack: Stack) {
    this.stack = stack;
    ({ lines: this.lines, logger: this.logger } = recordingLogger());
  }

  static async create(stack: Stack): Promise<CallerRoom> {
    const room = new CallerRoom(stack);
    room.store = room.#resources.use(await openStore(stack.storeUrl, { tables: LEDGER_TABLES }));
    room.callee = await (await room.scripted(room.calleeId)).listen();
    return room;
  }

  /** Another callee by hand, which does not listen yet. */
  async scripted(calleeId: string): Promise<ScriptedCallee> {
    return new ScriptedCallee(this.#resources.use(await this.stack.connect()), calleeId, this.callerId);
  }

  /** A started caller with a link of its own; what it tells is kept in `told`. */
  async caller(options: Partial<CallerOptions> = {}): Promise<Caller> {
    const { callerId, store, clock, logger, told } = this;
    const transport = this.#resources.use(await this.stack.connect());
    const caller = createCaller({
      ...{ callerId, transport, store, clock, logger, ...TIMES },
      onGap: ({ range: [from, to] }) => told.add(`gap ${from}..${to}`),
      onLateEvent: ({ payload }) => told.add(`late ${payload.sequence}`),
      onOrphan: ({ type }) => told.add(`orphan ${type}`),
      onUncorrelated: ({ type }) => told.add(`uncorrelated ${type}`),
      onApprovalPending: ({ sessionId, riskLevel }) => told.add(`pending ${riskLevel} ${sessionId}`),
      onInvalid: ({ code }) => told.add(`invalid ${code}`),
      onTrouble: ({ code }: HcpError) => told.add(`trouble ${code}`),
      ...options,
    });
    this.#resources.use(caller);
    await caller.start();
    return caller;
  }

  /** A session that was accepted. */
  async begin(caller: Caller, accepted: object = {}): Promise<{ session: Session; sessionId: string }> {
    const submitted = caller.submit(DO_IT, { calleeId: this.calleeId });
    const sessionId = await this.callee.accept(undefined, { ...accepted });
    return { session: await submitted, sessionId };
  }

  /** Fails with a sentence instead of hanging. */
  within<T>(what: string, promise: Promise<T>): Promise<T> {
    return within(WAIT_MS, what, promise);
  }

  /** What is stored of a session, once it is as it should be. */
  async followed(sessionId: string, isReady: (row: Row) => boolean): Promise<Row> {
    const poll = async (): Promise<Row> => {
      for (;;) {
        const row = await this.store.get('follows', [this.callerId, sessionId]);
        if (row && isReady(row)) return row;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    return this.within(`session ${sessionId} to be stored so`, poll());
  }

  /** The same, once it has ended. */
  ended(sessionId: string): Promise<Row> {
    return this.followed(sessionId, (row) => row.ended_at !== null);
  }

  /** What waits in the store for its turn in a session. */
  async waiting(sessionId: string): Promise<readonly Row[]> {
    return this.store.scan('parked', 'key', { where: [this.callerId, sessionId] });
  }

  logged(pattern: RegExp): string[] {
    return this.lines.filter((line) => pattern.test(line));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

/** Whether it is settled by now, after what waits in this turn of the event loop. */
export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  const turn = new Promise((resolve) => setImmediate(resolve, pending));
  return (await Promise.race([promise.catch(() => undefined), turn])) === pending;
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
