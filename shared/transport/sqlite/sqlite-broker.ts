import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../clock.ts';
import { HcpError, isHcpError } from '../../errors.ts';
import { Mutex } from '../../store/mutex.ts';
import {
  claimLayout,
  immediately,
  openDatabase,
  type Synchronous,
  sqliteCode,
  withBusyRetry,
} from '../../store/sqlite/database.ts';
import type { Broker, Rows } from '../embedded/broker.ts';
import { LAYOUT, LAYOUT_VERSION, SqliteRows } from './sqlite-rows.ts';

export interface SqliteBrokerOptions {
  readonly path: string;
  readonly synchronous: Synchronous;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly patienceMs: number;
  readonly clock: Clock;
}

/** This process's door to a broker that lives in a file. What other processes do is noticed by looking every `pollMs`. */
export class SqliteBroker implements Broker {
  readonly leaseMs: number;
  readonly #options: SqliteBrokerOptions;
  readonly #database: DatabaseSync;
  readonly #rows: SqliteRows;
  readonly #steps = new Mutex();
  readonly #listeners = new Set<() => void>();
  #version: unknown;
  #poll: unknown;

  private constructor(options: SqliteBrokerOptions, database: DatabaseSync) {
    this.leaseMs = options.leaseMs;
    this.#options = options;
    this.#database = database;
    this.#rows = new SqliteRows(database);
    this.#keepPolling();
  }

  /** Rejects with `transport_unreachable` when there can be no queues in this file. */
  static async open(options: SqliteBrokerOptions): Promise<SqliteBroker> {
    const { path, synchronous, clock } = options;
    let database: DatabaseSync | undefined;
    try {
      const opened = await openDatabase(path, { synchronous, clock });
      database = opened;
      await withBusyRetry(clock, () =>
        immediately(opened, () => {
          claimLayout(opened, 'transport', LAYOUT_VERSION);
          opened.exec(LAYOUT);
        }),
      );
      return new SqliteBroker(options, opened);
    } catch (error) {
      database?.close();
      const why = error instanceof Error ? error.message : String(error);
      throw new HcpError('transport_unreachable', `The queue file ${path} cannot be used: ${why}`, { cause: error });
    }
  }

  transact<T>(work: (rows: Rows) => T): Promise<T> {
    return this.#step((rows) => immediately(this.#database, () => work(rows)));
  }

  look<T>(work: (rows: Rows) => T): Promise<T> {
    return this.#step(work);
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#options.clock.clearTimeout(this.#poll);
    this.#database.close();
  }

  #step<T>(work: (rows: Rows) => T): Promise<T> {
    const { clock, patienceMs } = this.#options;
    return this.#steps.run(async () => {
      const before = this.#rows.writes;
      try {
        return await withBusyRetry(clock, () => work(this.#rows), patienceMs);
      } catch (error) {
        throw lost(error);
      } finally {
        if (this.#rows.writes !== before) this.#tell();
      }
    });
  }

  #keepPolling(): void {
    const { clock, pollMs } = this.#options;
    this.#poll = clock.setTimeout(() => {
      if (this.#hasNews()) this.#tell();
      this.#keepPolling();
    }, pollMs);
  }

  /** SQLite counts the commits of other connections: asking costs some microseconds. */
  #hasNews(): boolean {
    try {
      const version = this.#database.prepare('PRAGMA data_version').get()?.data_version;
      if (version === this.#version) return false;
      this.#version = version;
      return true;
    } catch {
      return false; // locked just now; the next step will tell
    }
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Whatever the file does not let us do, we wait for it: the link is lost until it does. */
function lost(error: unknown): unknown {
  if (sqliteCode(error) === undefined && !isHcpError(error, 'store_outcome_unknown')) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new HcpError('transport_lost', `The queue file does not answer: ${why}`, { cause: error });
}
