import type { Clock } from '../shared/clock.ts';
import type { Row, Store, Write } from '../shared/store/store.ts';
import type { Patience } from './patience.ts';

/** Stores events that have to wait, many at once: while one commit is under way the next ones collect. */
export class Parking {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #callerId: string;
  readonly #patience: Patience;
  #waiting: { write: Write; resolve: () => void; reject: (error: unknown) => void }[] = [];
  #running: Promise<void> | undefined;

  constructor(store: Store, clock: Clock, callerId: string, patience: Patience) {
    this.#store = store;
    this.#clock = clock;
    this.#callerId = callerId;
    this.#patience = patience;
  }

  /** Resolves when it is durable: the broker may forget the event then. */
  park(sessionId: string, sequence: number, body: string): Promise<void> {
    const row = {
      caller_id: this.#callerId,
      session_id: sessionId,
      sequence,
      kind: 'waiting',
      parked_at: this.#clock.now(),
      reason: null,
      body,
    };
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write: { put: 'parked', row }, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** What waits for its turn in a session, in order. */
  async waiting(sessionId: string): Promise<Row[]> {
    const rows: Row[] = [];
    let next = 0;
    for (;;) {
      const page = await this.#store.scan('parked', 'key', {
        where: [this.#callerId, sessionId],
        from: next,
        limit: 500,
      });
      next = Number(page.at(-1)?.sequence ?? 0) + 1;
      rows.push(...page.filter(({ kind }) => kind === 'waiting'));
      if (page.length < 500) return rows;
    }
  }

  async #run(): Promise<void> {
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#patience.with(() => this.#store.commit(group.map(({ write }) => write)));
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#running = undefined;
  }
}
