import { EventOutbox, type OutboxEntry } from '../../callee/outbox.ts';
import { newRecord, rowOf, type SessionRecord } from '../../session/record.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Row, Store } from '../../shared/store/store.ts';
import { connectMemory } from '../../shared/transport/memory/index.ts';
import { eventQueue, eventRoute, type QueueOptions } from '../../shared/transport/topology.ts';
import type { OutgoingMessage, Transport } from '../../shared/transport/transport.ts';
import { FaultyStore } from './faulty-store.ts';
import { Recorder, RecordingClock, recordingLogger } from './recorder.ts';

type Answer = 'confirmed' | 'unroutable';

/** Decides what becomes of a publish. `send` gives it to the broker and answers as the broker does. */
export type Interception = (text: string, send: () => Promise<Answer>) => Promise<Answer>;

export const SESSIONS = [
  'aaaaaaaa-5717-4562-b3fc-2c963f66afa6',
  'bbbbbbbb-5717-4562-b3fc-2c963f66afa6',
  'cccccccc-5717-4562-b3fc-2c963f66afa6',
] as const;

/** An outbox on a real broker and a real store, both in memory, with a hand on what passes in between. */
export class OutboxBench implements AsyncDisposable {
  readonly clock = new RecordingClock();
  /** What the outbox gave to the transport. */
  readonly sent = new Recorder<string>();
  /** What reached the caller. */
  readonly arrived = new Recorder<string>();
  readonly lines: Recorder<string>;
  readonly outbox: EventOutbox;
  readonly faulty: FaultyStore;
  readonly transport: Transport;
  readonly store: Store;
  intercept: Interception = (_, send) => send();

  private constructor(transport: Transport, store: Store, maxBacklog: number) {
    const { logger, lines } = recordingLogger();
    this.lines = lines;
    this.transport = transport;
    this.store = store;
    this.faulty = new FaultyStore(store);
    // Of a transport an outbox uses nothing else.
    const watched = { publish: (message: OutgoingMessage) => this.#publish(message) } as Transport;
    const { clock } = this;
    this.outbox = new EventOutbox({ transport: watched, store: this.faulty.store, clock, logger, maxBacklog });
  }

  static async create({ maxBacklog = 10_000 } = {}): Promise<OutboxBench> {
    return new OutboxBench(await connectMemory(), await openStore('memory:'), maxBacklog);
  }

  /** Stores a session and opens its lane. */
  async open(sessionId: string, { epoch = 1, publishedThrough = 0 } = {}): Promise<void> {
    await this.store.commit([{ put: 'sessions', row: rowOf(record(sessionId, epoch, publishedThrough)) }]);
    this.outbox.open({ sessionId, epoch }, publishedThrough);
  }

  /** Hands over positions `from` to `to`; each message is `{first letter of the session}{position}`. */
  add(sessionId: string, from: number, to: number, options: { closed?: boolean } = {}): void {
    const entries = Array.from({ length: to - from + 1 }, (_, index) => entry(sessionId, from + index));
    this.outbox.add(sessionId, entries, options);
  }

  declare(queue: QueueOptions = {}): Promise<void> {
    return this.transport.declare(eventQueue('alpha', queue));
  }

  /** Listens as the caller. */
  async listen(queue: QueueOptions = {}): Promise<void> {
    await this.transport.consume(
      eventQueue('alpha', queue),
      (delivery) => {
        delivery.ack();
        this.arrived.add(Buffer.from(delivery.body).toString());
      },
      { prefetch: 1000 },
    );
  }

  /** What the store knows of a session. */
  async stored(sessionId: string): Promise<Row | undefined> {
    return this.store.get('sessions', [sessionId]);
  }

  warnings(pattern: RegExp): string[] {
    return this.lines.all.filter((line) => pattern.test(line));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.outbox.close();
    await this.transport.close();
    await this.store.close();
  }

  #publish(message: OutgoingMessage): Promise<Answer> {
    const text = Buffer.from(message.body).toString();
    this.sent.add(text);
    return this.intercept(text, () => this.transport.publish(message));
  }
}

export function names(sessionId: string, from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => `${sessionId[0]}${from + index}`);
}

/** What one session says among the others. */
export function ofSession(sessionId: string, texts: readonly string[]): string[] {
  return texts.filter((text) => text.startsWith(sessionId[0] as string));
}

/** The positions a receiver takes that skips what it has and what is too early: the strictest there is. */
export function takenInOrder(texts: readonly string[]): number[] {
  const taken: number[] = [];
  for (const position of texts.map((text) => Number(text.slice(1)))) {
    if (position === taken.length + 1) taken.push(position);
  }
  return taken;
}

function entry(sessionId: string, position: number): OutboxEntry {
  const route = eventRoute('alpha', sessionId, 'event');
  return { position, message: { route, body: Buffer.from(`${sessionId[0]}${position}`), properties: {} } };
}

function record(sessionId: string, epoch: number, publishedThrough: number): SessionRecord {
  return newRecord({
    ...{ sessionId, calleeId: 'lab', callerId: 'alpha', messageId: sessionId, owner: 'i1', epoch, publishedThrough },
    ...{ state: 'RUNNING', request: '{}', trace: '{}', createdAt: 0 },
  });
}
