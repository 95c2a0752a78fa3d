import { type Context, context } from '@opentelemetry/api';
import type { EventMessage } from '../schemas/types.ts';
import { closeHole, type Range } from '../session/arrival.ts';
import { HcpError } from '../shared/errors.ts';
import type { Row, Write } from '../shared/store/store.ts';
import { traceContext } from '../shared/telemetry.ts';
import { Applier } from './applier.ts';
import { Endings } from './endings.ts';
import type { ReceivedEvent, Verdict } from './event-channel.ts';
import { type Follow, followOf, isForeign, isOddTransition, type ResultMessage } from './follow.ts';
import { FollowedSession } from './followed-session.ts';
import { Gaps } from './gaps.ts';
import { pages } from './housekeeping.ts';
import type { Item, Lane } from './lane.ts';
import type { CallerListeners, CallerSettings } from './options.ts';
import { Parking } from './parking.ts';
import { Patience } from './patience.ts';
import { readEvents } from './reader.ts';
import type { CallerTelemetry } from './telemetry.ts';

export interface FollowerParts {
  readonly settings: CallerSettings;
  readonly telemetry: CallerTelemetry;
  /** Asks the callee for a range again. */
  readonly askReplay: (follow: Follow, range: Range) => void;
}

const NOTHING = () => {};

/** Brings every event of every session to its turn: once, in order, whatever order and however often they come. */
export class Follower {
  readonly #settings: CallerSettings;
  readonly #parts: FollowerParts;
  readonly #sessions = new Map<string, Promise<FollowedSession | undefined>>();
  readonly #byLane = new WeakMap<Lane, FollowedSession>();
  readonly #traces = new WeakMap<EventMessage, Context>();
  readonly #patience: Patience;
  readonly #parking: Parking;
  readonly #applier: Applier | undefined;
  readonly #endings: Endings;
  readonly #gaps: Gaps;
  #inHand = 0;

  constructor(parts: FollowerParts) {
    const { settings } = parts;
    const { store, clock, logger, callerId, onEvent, maxAttempts, handlerTimeoutMs } = settings;
    this.#settings = settings;
    this.#parts = parts;
    this.#patience = new Patience(clock, logger);
    const tell = this.tell.bind(this);
    this.#endings = new Endings({ settings, askReplay: parts.askReplay, patience: this.#patience, tell });
    this.#gaps = new Gaps({ ...parts, tell, proceed: (session) => this.#proceed(session) });
    this.#parking = new Parking(store, clock, callerId, this.#patience);
    this.#applier =
      onEvent &&
      new Applier({
        ...{ store, clock, logger, maxAttempts, handlerTimeoutMs },
        // In the trace the event came with, where it is still known.
        handler: (event, tx) => context.with(this.#traces.get(event) ?? context.active(), () => onEvent(event, tx)),
        onApplied: (lane, items, before) => {
          parts.telemetry.event('processed', lane.follow.cursor - before.cursor);
          this.#applied(lane, items);
        },
        onParked: (event, error) => {
          parts.telemetry.event('failed');
          this.tell('onParked', event, error);
        },
        onRival: (lane, items) => this.#reload(lane, items),
      });
  }

  /** A session that is being accepted: its first events come before that is stored, and wait for it. */
  expect(sessionId: string, accepted: Promise<Follow | undefined>): Promise<FollowedSession | undefined> {
    const open = () => accepted.then((follow) => follow && this.#patience.with(() => this.#begin(follow)));
    const known = this.#sessions.get(sessionId);
    // An event may have come first, and found no session.
    return this.#keep(sessionId, known ? known.then((found) => found ?? open()) : open());
  }

  /** Events in hand that are not processed. */
  get lag(): number {
    return this.#inHand;
  }

  /** Takes up every session that has not ended (HCP-215). */
  async resume(): Promise<void> {
    const { store, callerId } = this.#settings;
    for await (const rows of pages(store, 'follows', 'by_open', { where: [callerId, 1] })) {
      await Promise.all(rows.map((row) => this.find(String(row.session_id))));
    }
  }

  find(sessionId: string): Promise<FollowedSession | undefined> {
    const load = () => this.#load(sessionId);
    return this.#sessions.get(sessionId) ?? this.#keep(sessionId, this.#patience.with(load));
  }

  #keep(sessionId: string, session: Promise<FollowedSession | undefined>): Promise<FollowedSession | undefined> {
    const forget = () => {
      if (this.#sessions.get(sessionId) === session) this.#sessions.delete(sessionId);
    };
    this.#sessions.set(sessionId, session);
    session.then((found) => found ?? forget(), forget);
    return session;
  }

  /** Resolves when the event is processed, or safely put aside: it may be acknowledged then. */
  async receive(received: ReceivedEvent & { readonly message: EventMessage }): Promise<Verdict> {
    const { message, body, headers, appId, userId } = received;
    this.#traces.set(message, traceContext(headers));
    const session = await this.find(message.session_id);
    if (session === undefined) return this.tell('onOrphan', message);
    const { follow } = session;
    const { sequence, event_type: type } = message.payload;
    const about = { session_id: follow.sessionId, message_id: message.message_id, sequence, type };
    if (isForeign(follow, appId, userId)) {
      this.#settings.logger.error({ ...about, app_id: appId, user_id: userId }, 'Event of another callee: refused');
      return 'reject';
    }
    if (isOddTransition(message)) this.#settings.logger.warn(about, 'No transition of HCP: followed all the same');
    if (type === 'x-status') session.statusTold(message);
    if (type === 'x-replay-unavailable') this.#gaps.answered(session, message);
    // Sent after the end: no event of the stream, only an answer.
    if (sequence === 0 && type.startsWith('x-')) return;
    this.#inHand++;
    try {
      return await this.#arrive(session, sequence, message, Buffer.from(body).toString());
    } finally {
      this.#inHand--;
    }
  }

  /** An event that cannot be read, but whose place is known: its number is spent (D-41). */
  async skip(sessionId: string, sequence: number): Promise<void> {
    const session = await this.find(sessionId);
    if (session !== undefined) await this.#arrive(session, sequence, undefined, '');
  }

  /** Resolves when the result is stored. */
  async receiveResult(message: ResultMessage): Promise<void> {
    const session = await this.find(message.session_id);
    if (session === undefined) return this.tell('onOrphan', message);
    return this.#endings.receiveResult(session, message);
  }

  /** Events for a reader, each acknowledged by asking for the next. */
  read(session: FollowedSession, signal: AbortSignal | undefined): AsyncGenerator<EventMessage, void, void> {
    if (this.#applier) throw new TypeError('events() is for a caller without onEvent');
    const onRead = () => {
      this.#parts.telemetry.event('processed');
      this.#endings.look(session);
    };
    return readEvents(session, { store: this.#settings.store, signal, onRead });
  }

  async close(): Promise<void> {
    this.#patience.close();
    await this.#applier?.close();
    for (const found of await Promise.allSettled(this.#sessions.values())) {
      if (found.status === 'fulfilled') found.value?.close();
    }
  }

  tell<Name extends keyof CallerListeners>(name: Name, ...args: Parameters<NonNullable<CallerListeners[Name]>>): void {
    try {
      const listener = this.#settings.listeners[name] as ((...given: typeof args) => void) | undefined;
      listener?.(...args);
    } catch (error) {
      this.#settings.logger.error({ err: error }, `${name} threw`);
    }
  }

  async #load(sessionId: string): Promise<FollowedSession | undefined> {
    const { store, callerId } = this.#settings;
    const row = await store.get('follows', [callerId, sessionId]);
    return row && this.#begin(followOf(row));
  }

  /** With what waits for it already: that a human decides is told before the acceptance. */
  async #begin(follow: Follow): Promise<FollowedSession> {
    const waiting = await this.#parking.waiting(follow.sessionId);
    const session = this.#open(follow);
    await this.#takeUp(session, waiting);
    return session;
  }

  /** What waited in the store, and what the stored record tells. */
  async #takeUp(session: FollowedSession, rows: readonly Row[]): Promise<void> {
    for (const parked of rows) {
      const body = String(parked.body);
      // Stored by us, after it was checked; an empty one was invalid, and only its number counts.
      const event = body === '' ? undefined : (JSON.parse(body) as EventMessage);
      await this.#wait(session, Number(parked.sequence), event);
    }
    this.#proceed(session);
    this.#endings.look(session);
  }

  /** Looks how far other processes of ours are in sessions whose end is waited for here. */
  async refresh(): Promise<void> {
    const { store, callerId } = this.#settings;
    for (const session of await Promise.all(this.#sessions.values())) {
      if (session === undefined || session.hasSettled || !session.lane.isIdle || session.reloading) continue;
      const { sessionId, cursor } = session.follow;
      const row = await store.get('follows', [callerId, sessionId]);
      const isAhead = row !== undefined && (Number(row.last_processed_sequence) > cursor || row.result !== null);
      if (isAhead && session.lane.isIdle) await this.#reload(session.lane, []);
    }
  }

  /** Another process moved the cursor: from the start, with what is stored now. */
  #reload(lane: Lane, items: readonly Item[]): Promise<void> {
    const session = this.#byLane.get(lane);
    if (session === undefined) return Promise.resolve();
    const { callerId, sessionId } = session.follow;
    this.#settings.logger.info({ session_id: sessionId }, 'Another process follows this session too');
    session.clearAlarm('gap');
    session.reloading = this.#patience
      .with(async () => {
        const row = await this.#settings.store.get('follows', [callerId, sessionId]);
        const rows = await this.#parking.waiting(sessionId);
        if (row) lane.reload(followOf(row));
        await this.#takeUp(session, rows);
      })
      .finally(() => {
        session.reloading = undefined;
        for (const { again } of items) again();
      });
    return session.reloading;
  }

  #open(follow: Follow): FollowedSession {
    const session = new FollowedSession(follow, this.#settings.clock);
    this.#endings.watch(session);
    this.#byLane.set(session.lane, session);
    return session;
  }

  async #arrive(
    session: FollowedSession,
    sequence: number,
    event: EventMessage | undefined,
    body: string,
  ): Promise<Verdict> {
    while (session.reloading) await session.reloading;
    const { lane } = session;
    const twin = session.inHand.get(sequence);
    const arrival = lane.classify(sequence, this.#settings.maxAhead);
    if (arrival !== 'next' && arrival !== 'over') this.#parts.telemetry.event(arrival);
    if (twin) return twin;
    const about = { session_id: session.follow.sessionId, sequence };
    switch (arrival) {
      case 'duplicate':
        return;
      case 'over':
        return this.#settings.logger.warn(about, 'Event after session_closed: passed over');
      case 'absurd':
        this.#settings.logger.error(about, 'Sequence far ahead: refused');
        return 'reject';
      case 'late':
        return this.#keepInHand(session, sequence, this.#late(session, sequence, event));
      case 'next':
        if (this.#applier) return this.#keepInHand(session, sequence, this.#process(session, sequence, event, body));
    }
    return this.#keepInHand(session, sequence, this.#park(session, sequence, event, body));
  }

  #keepInHand(session: FollowedSession, sequence: number, work: Promise<Verdict>): Promise<Verdict> {
    const kept = work.finally(() => {
      if (session.inHand.get(sequence) === kept) session.inHand.delete(sequence);
    });
    session.inHand.set(sequence, kept);
    return kept;
  }

  /** Stored, to wait for its turn. */
  async #park(
    session: FollowedSession,
    sequence: number,
    event: EventMessage | undefined,
    body: string,
  ): Promise<void> {
    session.lane.reserve(sequence);
    try {
      await this.#parking.park(session.follow.sessionId, sequence, body);
    } finally {
      session.lane.unreserve(sequence);
    }
    await this.#wait(session, sequence, event);
    this.#proceed(session);
  }

  /** It has a row among the parked; its turn may be over meanwhile. */
  async #wait(session: FollowedSession, sequence: number, event: EventMessage | undefined): Promise<void> {
    const { lane } = session;
    const arrival = lane.classify(sequence, Number.POSITIVE_INFINITY);
    if (arrival === 'late') return this.#late(session, sequence, event);
    if (arrival === 'duplicate' || arrival === 'over') return this.#discard(session, [sequence]);
    lane.wait({ sequence, event, isParked: true, settled: NOTHING, again: NOTHING, lost: NOTHING });
  }

  async #discard({ follow: { callerId, sessionId } }: FollowedSession, sequences: readonly number[]): Promise<void> {
    if (sequences.length === 0) return;
    const writes = sequences.map((sequence): Write => ({ delete: 'parked', key: [callerId, sessionId, sequence] }));
    await this.#patience.with(() => this.#settings.store.commit(writes));
  }

  /** Through the handler; resolves with its commit. */
  #process(
    session: FollowedSession,
    sequence: number,
    event: EventMessage | undefined,
    body: string,
  ): Promise<Verdict> {
    const { lane } = session;
    return new Promise((resolve, reject) => {
      const item: Item = {
        ...{ sequence, event, isParked: false },
        settled: () => resolve(),
        again: () => {
          session.inHand.delete(sequence);
          resolve(this.#arrive(session, sequence, event, body));
        },
        lost: () => reject(new HcpError('caller_closed', 'The caller is closed')),
      };
      lane.pass(item);
      this.#applier?.add(lane, [item]);
      this.#proceed(session);
    });
  }

  /** Lets through what can go on now, and watches what cannot. */
  #proceed(session: FollowedSession): void {
    const released = session.lane.release();
    if (this.#applier) this.#applier.add(session.lane, released);
    else session.deliver(released);
    const strays = session.lane.strays().map(({ sequence }) => sequence);
    // What stays is discarded when the session is met next.
    this.#discard(session, strays).catch(NOTHING);
    this.#gaps.watch(session);
    if (!this.#applier) this.#endings.look(session);
  }

  async #late(session: FollowedSession, sequence: number, event: EventMessage | undefined): Promise<void> {
    const { lane } = session;
    const key = [session.follow.callerId, session.follow.sessionId];
    lane.fill(sequence);
    await this.#patience.with(() =>
      // From what is stored: a commit that is under way may bring holes of its own.
      this.#settings.store.transaction(async (tx) => {
        const row = await tx.get('follows', key);
        const holes = row ? JSON.stringify(closeHole(followOf(row).holes, sequence)) : '[]';
        await tx.write([
          { patch: 'follows', key, set: { holes } },
          { delete: 'parked', key: [...key, sequence] },
        ]);
      }),
    );
    lane.follow = { ...lane.follow, holes: lane.holesBefore(lane.follow.cursor) };
    if (event) this.tell('onLateEvent', event);
  }

  #applied(lane: Lane, items: readonly Item[]): void {
    const session = this.#byLane.get(lane);
    if (session === undefined) return;
    session.passed(items);
    this.#endings.look(session);
  }
}
