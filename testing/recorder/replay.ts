import { type Caller, type CallerOptions, createCaller, type Outcome } from '../../caller/index.ts';
import type { TaskSubmit } from '../../schemas/types.ts';
import { Resources } from '../../shared/resources.ts';
import { createMemoryStore } from '../../shared/store/memory/index.ts';
import type { Row, Store } from '../../shared/store/store.ts';
import { hcpTables } from '../../shared/store/tables.ts';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import { commandQueue } from '../../shared/transport/topology.ts';
import type { Delivery, Transport } from '../../shared/transport/transport.ts';
import { wrapDelivery, wrapTransport } from '../wrap-transport.ts';
import { type RecordedMessage, readRecording } from './recording.ts';

/** A caller's options, but for what the recording brings. */
export interface ReplayOptions
  extends Omit<CallerOptions, 'callerId' | 'transport' | 'store' | 'onEvent' | 'queue' | 'partitions'> {
  /** The handler under test. */
  readonly onEvent: NonNullable<CallerOptions['onEvent']>;
  /** Where its effects go. @default a memory store without tables of the program */
  readonly store?: Store;
}

/** A session after its recording was replayed. */
export interface ReplayedSession {
  readonly sessionId: string;
  readonly state: string;
  /** How it ended; `null` where the recording stops before. */
  readonly outcome: Record<string, unknown> | null;
  /** The last event that was processed. */
  readonly lastSequence: number;
  /** What never came, as ranges. */
  readonly holes: readonly (readonly [from: number, to: number])[];
  /** What the handler could not process. */
  readonly parked: readonly { readonly sequence: number; readonly reason: string }[];
}

/** What a replay did; a plain JSON value. */
export interface Replay {
  readonly sessions: readonly ReplayedSession[];
  /** The rows of the program's own tables, by table. */
  readonly effects: Readonly<Record<string, readonly Row[]>>;
}

/**
 * Gives a recording to a handler as it came, through a real caller: order, repetitions and transactions are the caller's.
 * Each message is fully processed before the next, so a replay is the same every time. Rejects with `TypeError` for a file
 * that is no recording or has no submit, and with what `result()` of a session rejects with.
 */
export async function replayRecording(
  file: string | URL,
  { store = createMemoryStore(), ...options }: ReplayOptions,
): Promise<Replay> {
  const messages = await readRecording(file);
  const submits = submitsOf(messages);
  const [first] = submits;
  if (first === undefined) throw new TypeError(`${file} has no task_submit: nobody would follow what comes`);
  const callerId = first.request.payload.caller_id;
  await using stage = await Stage.open(submits);
  await store.commit(submits.map((submit) => ({ insert: 'submissions', row: rowOf(submit, callerId) })));
  await using caller = createCaller({ ...options, callerId, store, transport: stage.transport });
  await caller.start();
  for (const message of messages) if (message.direction === 'received') await stage.deliver(message);
  const sessions: ReplayedSession[] = [];
  for (const { request } of submits) {
    const row = await store.get('submissions', [callerId, request.message_id]);
    if (row?.status !== 'accepted') continue;
    sessions.push(await look(caller, store, [callerId, String(row.session_id)]));
  }
  return { sessions, effects: await effectsIn(store) };
}

interface Submit {
  readonly calleeId: string;
  readonly request: TaskSubmit;
  readonly body: string;
}

function submitsOf(messages: readonly RecordedMessage[]): Submit[] {
  const submits = new Map<string, Submit>(); // it may have been sent more than once
  for (const { direction, properties, route, body } of messages) {
    if (direction !== 'sent' || properties.type !== 'task_submit') continue;
    const request = JSON.parse(body.toString()) as TaskSubmit; // a caller of ours sent it
    submits.set(request.message_id, { calleeId: route.routingKey, request, body: body.toString() });
  }
  return [...submits.values()];
}

/** A submit that was sent in an earlier life: its answer names it by its own id. */
function rowOf({ calleeId, request, body }: Submit, callerId: string): Row {
  return {
    ...{ caller_id: callerId, message_id: request.message_id, callee_id: calleeId, status: 'open' },
    ...{ submitted_at: Date.parse(request.timestamp), request: body },
    ...{ session_id: null, approval_until: null, answer: null },
  };
}

/** A broker on which one message after the other reaches the caller, with the login it came with. */
class Stage implements AsyncDisposable {
  readonly #broker = new MemoryBroker();
  readonly #senders = new Map<string | undefined, Transport>();
  readonly #resources = new Resources();
  #settled: () => void = () => {};
  transport!: Transport;

  static async open(submits: readonly Submit[]): Promise<Stage> {
    const stage = new Stage();
    const inner = await stage.#connect(undefined);
    // What the caller sends has somewhere to go.
    for (const { calleeId } of submits) await inner.declare(commandQueue(calleeId));
    stage.transport = wrapTransport(inner, {
      consume: (queue, handler, options) =>
        inner.consume(
          queue,
          (delivery) => handler(wrapDelivery(delivery, (how) => stage.#settle(delivery, how))),
          options,
        ),
    });
    return stage;
  }

  /** Resolves when the caller is done with it. */
  async deliver({ route, body, properties: { userId, ...properties } }: RecordedMessage): Promise<void> {
    const sender = this.#senders.get(userId) ?? (await this.#connect(userId));
    this.#senders.set(userId, sender);
    const settled = new Promise<void>((resolve) => {
      this.#settled = resolve;
    });
    await sender.publish({ route, body, properties });
    await settled;
  }

  #settle(delivery: Delivery, how: 'ack' | 'retry' | 'reject'): void {
    delivery[how]();
    if (how !== 'retry') this.#settled(); // else it comes again
  }

  async #connect(login: string | undefined): Promise<Transport> {
    return this.#resources.use(await connectMemory({ broker: this.#broker, ...(login !== undefined && { login }) }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources[Symbol.asyncDispose]();
  }
}

async function look(
  caller: Caller,
  store: Store,
  key: [callerId: string, sessionId: string],
): Promise<ReplayedSession> {
  const [, sessionId] = key;
  const session = await caller.session(sessionId);
  const { result, final_state: finalState } = (await store.get('follows', key)) ?? {};
  const hasEnded = result != null || finalState === 'ABORTED';
  const outcome = hasEnded && session ? plain(await session.result()) : null;
  const row = await store.get('follows', key);
  const parked = (await caller.parked({ limit: 1000 })).filter((event) => event.sessionId === sessionId);
  return {
    ...{ sessionId, outcome, state: String(row?.state) },
    lastSequence: Number(row?.last_processed_sequence),
    holes: JSON.parse(String(row?.holes)),
    parked: parked.map(({ sequence, reason }) => ({ sequence, reason })),
  };
}

/** The message itself is in the recording. */
function plain(outcome: Outcome): Record<string, unknown> {
  return JSON.parse(JSON.stringify({ ...outcome, message: undefined }));
}

async function effectsIn(store: Store): Promise<Record<string, readonly Row[]>> {
  const effects: Record<string, readonly Row[]> = {};
  for (const table of Object.keys(store.tables)) {
    if (!(table in hcpTables)) effects[table] = await allRows(store, table);
  }
  return effects;
}

async function allRows(store: Store, table: string): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const after = rows.at(-1);
    const page = await store.scan(table, 'key', { limit: 1000, ...(after && { after }) });
    rows.push(...page);
    if (page.length < 1000) return rows;
  }
}
