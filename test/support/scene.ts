import { randomBytes } from 'node:crypto';
import { type Caller, type CallerOptions, createCaller, type Session } from '../../caller/index.ts';
import type { EventMessage, TaskAcceptedPayload } from '../../schemas/types.ts';
import type { Range } from '../../session/arrival.ts';
import type { Row, Store, StoreTransaction } from '../../shared/store/store.ts';
import { deadLetterQueue, eventQueue, type eventRoute } from '../../shared/transport/topology.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { within } from '../../testing/transport-contract/stage.ts';
import { FakeCallee } from './fake-callee.ts';
import { Recorder, RecordingClock, recordingLogger } from './recorder.ts';
import type { Stack } from './stacks.ts';

/** What a scene needs of a stack. */
export type Ground = Pick<Stack, 'connect' | 'openStore'>;

const LIMIT_MS = 20_000;

/** A session somebody follows. */
export interface Followed {
  readonly session: Session;
  readonly sessionId: string;
}

/** A real caller, a callee by hand, and everything the caller tells. Time stands still. */
export class Scene implements AsyncDisposable {
  readonly callerId = `alpha-${randomBytes(4).toString('hex')}`;
  readonly clock = new RecordingClock();
  readonly log = recordingLogger();
  /** Sequences in the order their handlers ended, rolled back or not. */
  readonly handled = new Recorder<number>();
  readonly gaps = new Recorder<Range>();
  readonly late = new Recorder<number>();
  readonly parked = new Recorder<number>();
  readonly orphans = new Recorder<string>();
  readonly invalid = new Recorder<string>();
  /** One for each transaction and commit of the caller that is over. */
  readonly storeCalls = new Recorder<'transaction' | 'commit'>();
  readonly #ground: Ground;
  readonly #resources = new AsyncDisposableStack();
  callee!: FakeCallee;
  store!: Store;

  private constructor(ground: Ground) {
    this.#ground = ground;
  }

  static async open(ground: Ground, accepted: Partial<TaskAcceptedPayload> = {}): Promise<Scene> {
    const scene = new Scene(ground);
    scene.store = scene.#watched(scene.#resources.use(await ground.openStore()));
    scene.callee = await FakeCallee.listen(await scene.connect(), scene.callerId, accepted);
    return scene;
  }

  async connect(): Promise<Transport> {
    return this.#resources.use(await this.#ground.connect());
  }

  /** A started caller with a link of its own. */
  async caller(options: Partial<CallerOptions> = {}): Promise<Caller> {
    const { callerId, store, clock } = this;
    const caller = createCaller({
      ...{ callerId, store, clock, logger: this.log.logger },
      onEvent: (event) => this.handled.add(event.payload.sequence),
      onGap: ({ range }) => this.gaps.add(range),
      onLateEvent: ({ payload }) => this.late.add(payload.sequence),
      onParked: ({ payload }) => this.parked.add(payload.sequence),
      onOrphan: ({ message_id }) => this.orphans.add(message_id),
      onInvalid: ({ code }) => this.invalid.add(code),
      ...options,
      transport: options.transport ?? (await this.connect()),
    });
    this.#resources.use(caller);
    await caller.start();
    return caller;
  }

  async submit(caller: Caller): Promise<Followed> {
    const task = { capability: 'test.task', intent: 'Do it', inputs: {} };
    const session = await caller.submit(task, { calleeId: this.callee.calleeId });
    if (session.sessionId === undefined) throw new Error('The task was rejected');
    return { session, sessionId: session.sessionId };
  }

  /** A caller with one session that has come so far. */
  async following(upTo: number, options: Partial<CallerOptions> = {}): Promise<Followed & { caller: Caller }> {
    const caller = await this.caller(options);
    const followed = await this.submit(caller);
    for (let sequence = 1; sequence <= upTo; sequence++) await this.callee.event(followed.sessionId, sequence);
    if (upTo > 0) await this.reaches(followed.sessionId, upTo);
    this.handled.all.length = 0;
    return { caller, ...followed };
  }

  async row(sessionId: string): Promise<Row> {
    const row = await this.store.get('follows', [this.callerId, sessionId]);
    if (row === undefined) throw new Error('The session is not followed');
    return row;
  }

  async cursor(sessionId: string): Promise<number> {
    return Number((await this.row(sessionId)).last_processed_sequence);
  }

  async holes(sessionId: string): Promise<unknown> {
    return JSON.parse(String((await this.row(sessionId)).holes));
  }

  /** Waits until the stored cursor is there. */
  async reaches(sessionId: string, cursor: number): Promise<void> {
    let last: number | undefined;
    await this.whenStored(async () => {
      last = await this.cursor(sessionId);
      return last === cursor;
    }, `cursor ${cursor}`);
  }

  /** Waits until a condition on the store holds; it is looked at after each write of the caller. */
  async whenStored(condition: () => Promise<boolean>, what: string): Promise<void> {
    for (;;) {
      const next = this.storeCalls.count(this.storeCalls.all.length + 1);
      if (await condition()) return;
      await within(LIMIT_MS, `${what}; logged: ${this.log.lines.all.slice(-5).join('\n')}`, next);
    }
  }

  async waitingRows(sessionId: string, kind = 'waiting'): Promise<readonly Row[]> {
    const rows = await this.store.scan('parked', 'key', { where: [this.callerId, sessionId], limit: 1000 });
    return rows.filter((row) => row.kind === kind);
  }

  /** Waits until so many events are parked. */
  async holds(sessionId: string, count: number): Promise<void> {
    await this.whenStored(async () => (await this.waitingRows(sessionId)).length === count, `${count} parked events`);
  }

  /** What was left unacknowledged in the caller's queue; the caller must be closed. */
  async unacked(): Promise<string[]> {
    return this.#drain(eventQueue(this.callerId), {
      exchange: 'hcp.events',
      routingKey: `${this.callerId}.none.marker`,
    });
  }

  /** What the caller refused. */
  async buried(): Promise<string[]> {
    const queue = deadLetterQueue(eventQueue(this.callerId));
    const [binding] = queue.bindings;
    if (binding === undefined || !('routingKey' in binding)) throw new Error('No way to the dead letters');
    return this.#drain(queue, binding);
  }

  async #drain(queue: ReturnType<typeof eventQueue>, route: ReturnType<typeof eventRoute>): Promise<string[]> {
    const transport = await this.connect();
    await transport.declare(queue);
    await transport.publish({ route, body: Buffer.from('marker'), properties: {} });
    const found = new Recorder<string>();
    await transport.consume(queue, (delivery) => {
      delivery.ack();
      found.add(Buffer.from(delivery.body).toString());
    });
    await within(
      LIMIT_MS,
      'the marker',
      found.until((all) => all.includes('marker')),
    );
    return found.all.filter((text) => text !== 'marker');
  }

  #watched(inner: Store): Store {
    const told = async <T>(name: 'transaction' | 'commit', work: Promise<T>): Promise<T> => {
      try {
        return await work;
      } finally {
        this.storeCalls.add(name);
      }
    };
    return {
      ...inner,
      transaction: <T>(work: (tx: StoreTransaction) => Promise<T>) => told('transaction', inner.transaction(work)),
      commit: (writes) => told('commit', inner.commit(writes)),
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

export function sequenceOf({ payload }: EventMessage): number {
  return payload.sequence;
}
