import type { ChannelModel } from 'amqplib';
import { backoffMs } from '../../backoff.ts';
import { delay } from '../../clock.ts';
import { HcpError, isHcpError } from '../../errors.ts';
import { closedError } from '../status-board.ts';
import type { TransportStatus } from '../transport.ts';
import { dial } from './dial.ts';
import type { ResolvedAmqpOptions } from './options.ts';
import { describeServer } from './server-url.ts';

/** One life of a connection. Channels, delivery tags and unconfirmed publishes die with it. */
export interface Generation {
  readonly connection: ChannelModel;
  /** Aborted when this life is over; its reason is a `transport_lost` error. */
  readonly over: AbortSignal;
}

/** A connection that is rebuilt whenever it is lost, until closed. */
export class Link {
  readonly #options: ResolvedAmqpOptions;
  readonly #purpose: 'publish' | 'consume';
  readonly #onChange: () => void;
  readonly #waiting = new Set<(generation: Generation) => void>();
  readonly #closed = new AbortController();
  #generation: Generation | undefined;
  #blocked = false;
  /** Of the current generation, also while it is being dialled. */
  #socket = new AbortController();

  constructor(options: ResolvedAmqpOptions, purpose: 'publish' | 'consume', onChange: () => void) {
    this.#options = options;
    this.#purpose = purpose;
    this.#onChange = onChange;
  }

  get status(): TransportStatus {
    if (this.#closed.signal.aborted) return 'closed';
    if (this.#generation === undefined) return 'lost';
    return this.#blocked ? 'blocked' : 'open';
  }

  /** The first connection. Rejects with `transport_unreachable`; only later losses are repaired. */
  async open(): Promise<void> {
    this.#socket = new AbortController();
    const socket = this.#socket;
    const connection = await dial(this.#options, this.#purpose, socket);
    const over = (cause: unknown) => this.#over(socket, cause);
    connection.on('error', over);
    connection.on('close', over);
    connection.on('blocked', (reason) => this.#setBlocked(true, reason));
    connection.on('unblocked', () => this.#setBlocked(false));
    const generation = { connection, over: socket.signal };
    this.#generation = generation;
    this.#onChange();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const proceed of waiting) proceed(generation);
  }

  /** The living connection, or the next one. Rejects with the signal's reason, and with `transport_closed`. */
  next(signal: AbortSignal): Promise<Generation> {
    return new Promise((resolve, reject) => {
      this.#closed.signal.throwIfAborted();
      signal.throwIfAborted();
      if (this.#generation !== undefined) return resolve(this.#generation);
      const stop = AbortSignal.any([signal, this.#closed.signal]);
      const give = (generation: Generation) => {
        stop.removeEventListener('abort', giveUp);
        resolve(generation);
      };
      const giveUp = () => {
        this.#waiting.delete(give);
        reject(stop.reason);
      };
      stop.addEventListener('abort', giveUp, { once: true });
      this.#waiting.add(give);
    });
  }

  /** Does something that needs a living connection, again on the next one when this one dies meanwhile. */
  async perform<T>(work: (generation: Generation) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      const generation = await this.next(signal);
      try {
        return await work(generation);
      } catch (error) {
        // Such an answer may come by way of ending the connection; asking again would end the next one.
        if (!generation.over.aborted || isHcpError(error, 'topology_unsupported')) throw error;
      }
    }
  }

  /** Gives up a connection that looks alive but is not, and builds a new one. */
  drop(generation: Generation, why: string): void {
    if (generation === this.#generation) this.#over(this.#socket, new Error(why));
  }

  /** Says goodbye, for at most `timeoutMs`, then hangs up. */
  async close(timeoutMs: number): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort(closedError());
    const generation = this.#generation;
    const timeUp = new AbortController();
    if (generation !== undefined) {
      // amqplib's own promise is never settled when the connection dies before the broker has answered.
      const gone = new Promise<void>((resolve) => generation.over.addEventListener('abort', () => resolve()));
      await Promise.race([
        gone,
        generation.connection.close().catch(() => {}), // it is gone already: all the better
        delay(this.#options.clock, timeoutMs, timeUp.signal).catch(() => {}),
      ]);
    }
    timeUp.abort();
    this.#over(this.#socket, new Error('closed by us'));
  }

  #setBlocked(blocked: boolean, reason?: string): void {
    this.#blocked = blocked;
    const fields = { link: this.#purpose, reason };
    if (blocked) this.#options.logger.warn(fields, 'The broker is out of resources and accepts nothing for now');
    else this.#options.logger.info(fields, 'The broker accepts messages again');
    this.#onChange();
  }

  /** The end of a generation. One failure makes amqplib emit several events: only the first one counts. */
  #over(socket: AbortController, cause: unknown): void {
    if (socket.signal.aborted) return;
    this.#generation = undefined;
    this.#blocked = false;
    const why = cause instanceof Error ? cause.message : 'closed by the broker';
    const lost = new HcpError('transport_lost', `Lost the link to ${describeServer(this.#options.server)}: ${why}`, {
      cause,
    });
    const closed = this.#closed.signal.aborted;
    if (!closed) this.#options.logger.warn({ link: this.#purpose, err: lost }, 'Lost the link to the broker');
    this.#onChange();
    socket.abort(lost);
    if (!closed) void this.#rebuild();
  }

  async #rebuild(): Promise<void> {
    const { clock, random, reconnect, logger } = this.#options;
    for (let attempt = 0; !this.#closed.signal.aborted; attempt++) {
      try {
        await delay(clock, backoffMs(attempt, reconnect, random), this.#closed.signal);
        await this.open();
        logger.info({ link: this.#purpose, attempt }, 'The link to the broker is back');
        return;
      } catch (error) {
        if (this.#closed.signal.aborted) return;
        logger.warn({ link: this.#purpose, attempt, err: error }, 'The broker cannot be reached yet');
      }
    }
  }
}
