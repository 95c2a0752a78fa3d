import { type ConfirmChannel, IllegalOperationError } from 'amqplib';
import { backoffMs } from '../../backoff.ts';
import { delay } from '../../clock.ts';
import { HcpError } from '../../errors.ts';
import { closedError } from '../status-board.ts';
import type { OutgoingMessage } from '../transport.ts';
import { channelEnd, type Refusal } from './channel.ts';
import type { Generation, Link } from './link.ts';
import type { ResolvedAmqpOptions } from './options.ts';
import { outgoing, refuseOversized } from './properties.ts';
import { type Pending, PublishQueue } from './publish-queue.ts';
import type { Topology } from './topology.ts';

type Outcome = 'confirmed' | 'unroutable';

/** A confirm channel in use. */
interface Session {
  readonly generation: Generation;
  readonly channel: ConfirmChannel;
  readonly end: Promise<Refusal | undefined>;
  /** amqplib's write buffer is full; it would go on taking without bound. */
  full: boolean;
}

const NOT_FOUND = 404;

/** Publishes in call order on one confirm channel, re-sending what a lost channel left unanswered (HCP-008). */
export class Publisher {
  readonly #options: ResolvedAmqpOptions;
  readonly #link: Link;
  readonly #topology: Topology;
  readonly #restoreQueues: () => Promise<void>;
  readonly #queue = new PublishQueue();
  readonly #stopped = new AbortController();
  #session: Session | undefined;
  #closing = false;
  #unawaited: (() => void) | undefined;
  /**
   * So many publishes go one at a time. The broker closes the channel over one message without saying which: of those
   * then in flight, the one that does it alone is the culprit.
   */
  #oneByOne = 0;
  #heardAt = 0;
  #watchdog: unknown;

  /** `restoreQueues` declares the transport's queues again, after an exchange was found deleted with its bindings. */
  constructor(options: ResolvedAmqpOptions, link: Link, topology: Topology, restoreQueues: () => Promise<void>) {
    this.#options = options;
    this.#link = link;
    this.#topology = topology;
    this.#restoreQueues = restoreQueues;
  }

  /** Opens the first channel. Rejects when the topology cannot be had; from then on the publisher repairs itself. */
  async start(): Promise<void> {
    const session = await this.#link.perform((generation) => this.#open(generation), this.#stopped.signal);
    void this.#supervise(session);
  }

  publish(message: OutgoingMessage, signal: AbortSignal | undefined): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (this.#closing) throw closedError();
      signal?.throwIfAborted();
      refuseOversized(message);
      const abandon = () => {
        pending.abandoned = true;
        reject(signal?.reason);
        this.#tellIfUnawaited();
      };
      const pending: Pending = {
        exchange: message.route.exchange,
        routingKey: message.route.routingKey,
        content: Buffer.from(message.body), // a copy: it may have to be sent again after the caller has reused the bytes
        options: outgoing(message.properties, this.#options.login),
        resolve: (outcome) => {
          signal?.removeEventListener('abort', abandon);
          resolve(outcome);
        },
        reject: (reason) => {
          signal?.removeEventListener('abort', abandon);
          reject(reason);
        },
        abandoned: false,
        returned: false,
        orphaned: false,
      };
      signal?.addEventListener('abort', abandon, { once: true });
      this.#queue.add(pending);
      this.#pump();
    });
  }

  /** The link's status has changed. */
  linkChanged(): void {
    // While blocked nobody answers, and that is no sign of a dead link.
    this.#heardAt = this.#options.clock.now();
    this.#pump();
  }

  /** Takes no more; waits until all is answered or `deadline` is aborted, then rejects the rest. */
  async close(deadline: AbortSignal): Promise<void> {
    this.#closing = true;
    await new Promise<void>((resolve) => {
      this.#unawaited = resolve;
      this.#tellIfUnawaited();
      if (deadline.aborted) resolve();
      deadline.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#stopped.abort(closedError());
    this.#options.clock.clearTimeout(this.#watchdog);
    for (const pending of this.#queue.drain()) pending.reject(closedError());
  }

  async #open(generation: Generation): Promise<Session> {
    await this.#topology.declareExchanges(generation.connection);
    const channel = await generation.connection.createConfirmChannel();
    const session: Session = { generation, channel, end: channelEnd(channel, this.#options.logger), full: false };
    channel.on('ack', ({ deliveryTag, multiple }) => this.#answered(session, deliveryTag, multiple, confirm));
    channel.on('nack', ({ deliveryTag, multiple }) => this.#answered(session, deliveryTag, multiple, refuse));
    channel.on('return', (message) => {
      if (session === this.#session) this.#queue.returned(message);
    });
    channel.on('drain', () => {
      session.full = false;
      this.#pump();
    });
    this.#session = session;
    this.#pump();
    return session;
  }

  async #supervise(first: Session): Promise<void> {
    let session = first;
    try {
      for (;;) {
        const refusal = await session.end;
        this.#session = undefined;
        if (refusal !== undefined) await this.#channelRefused(refusal);
        this.#queue.rewind();
        session = await this.#reopen();
      }
    } catch (error) {
      if (!this.#stopped.signal.aborted) throw error;
    }
  }

  async #reopen(): Promise<Session> {
    const { clock, random, reconnect, logger } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#link.perform((generation) => this.#open(generation), this.#stopped.signal);
      } catch (error) {
        this.#stopped.signal.throwIfAborted();
        logger.error({ err: error, attempt }, 'Publishing cannot go on yet');
        await delay(clock, backoffMs(attempt, reconnect, random), this.#stopped.signal);
      }
    }
  }

  #pump(): void {
    const session = this.#session;
    if (session === undefined || session.generation.over.aborted) return;
    const limit = this.#oneByOne > 0 ? 1 : this.#options.window;
    while (!session.full && this.#link.status === 'open' && this.#queue.inFlight < limit) {
      const pending = this.#queue.take();
      if (pending === undefined || !this.#send(session, pending)) break;
    }
    this.#watch();
  }

  /** Answers whether the channel takes more. */
  #send(session: Session, pending: Pending): boolean {
    if (this.#queue.inFlight === 0) this.#heardAt = this.#options.clock.now();
    const { exchange, routingKey, content, options } = pending;
    try {
      session.full = !session.channel.publish(exchange, routingKey, content, options);
      this.#queue.sent(pending);
      return true;
    } catch (error) {
      if (error instanceof IllegalOperationError) {
        this.#queue.putBack(pending); // the channel has just died
        return false;
      }
      // amqplib encodes before it writes: nothing was sent, no tag was used.
      pending.reject(new TypeError('A message property has a value AMQP cannot carry', { cause: error }));
      return true;
    }
  }

  #answered(session: Session, tag: number, multiple: boolean, settle: (pending: Pending) => void): void {
    if (session !== this.#session) return;
    this.#heardAt = this.#options.clock.now();
    for (const pending of this.#queue.answered(tag, multiple)) {
      if (this.#oneByOne > 0) this.#oneByOne--;
      settle(pending);
    }
    this.#pump();
    this.#tellIfUnawaited();
  }

  /** The broker closed the channel over a message: finds it, or has them sent one by one until it shows. */
  async #channelRefused(refusal: Refusal): Promise<void> {
    this.#options.logger.warn({ code: refusal.code, text: refusal.text }, 'The broker closed the publishing channel');
    if (refusal.code === NOT_FOUND) await this.#restoreQueues();
    if (this.#queue.inFlight !== 1) {
      this.#oneByOne = this.#queue.inFlight;
      return;
    }
    const [culprit] = this.#queue.answered(Number.POSITIVE_INFINITY, true);
    if (culprit === undefined) return;
    if (refusal.code === NOT_FOUND && !culprit.orphaned) {
      culprit.orphaned = true;
      this.#queue.sent(culprit);
      return;
    }
    if (this.#oneByOne > 0) this.#oneByOne--;
    culprit.reject(refusedFor(culprit, refusal));
    this.#tellIfUnawaited();
  }

  #tellIfUnawaited(): void {
    if (this.#unawaited !== undefined && !this.#queue.isAwaited) this.#unawaited();
  }

  #watch(): void {
    if (this.#watchdog !== undefined || this.#queue.inFlight === 0) return;
    const { clock, confirmTimeoutMs } = this.#options;
    const leftMs = this.#heardAt + confirmTimeoutMs - clock.now();
    this.#watchdog = clock.setTimeout(() => this.#checkSilence(), Math.max(0, leftMs));
  }

  #checkSilence(): void {
    this.#watchdog = undefined;
    const { clock, confirmTimeoutMs } = this.#options;
    if (this.#session === undefined || this.#queue.inFlight === 0 || this.#link.status !== 'open') return;
    if (clock.now() - this.#heardAt < confirmTimeoutMs) this.#watch();
    else this.#link.drop(this.#session.generation, `no confirm for ${confirmTimeoutMs} ms`);
  }
}

function confirm(pending: Pending): void {
  // An unroutable message is returned and then confirmed all the same.
  pending.resolve(pending.returned ? 'unroutable' : 'confirmed');
}

function refuse(pending: Pending): void {
  pending.reject(
    new HcpError(
      'publish_refused',
      `The broker refused a message for ${pending.exchange} with key ${pending.routingKey}`,
    ),
  );
}

function refusedFor(pending: Pending, { code, text }: Refusal): HcpError<'topology_missing' | 'publish_refused'> {
  if (code === NOT_FOUND)
    return new HcpError('topology_missing', `Exchange ${pending.exchange} does not exist: ${text}`);
  return new HcpError('publish_refused', `The broker refused a message for ${pending.exchange}: ${text}`, {
    reason: text.split(' ', 1)[0]?.toLowerCase() ?? String(code),
    retryable: false,
  });
}
