import { randomBytes } from 'node:crypto';
import type { ChannelModel } from 'amqplib';
import { HcpError } from '../../errors.ts';
import { EXCHANGES, type ExchangeName, type QueueDeclaration, type QueueProfile } from '../topology.ts';
import { type Refusal, refusalOf } from './channel.ts';
import { dial } from './dial.ts';
import { type ResolvedAmqpOptions, resolveAmqpOptions } from './options.ts';
import { Scratch } from './scratch.ts';
import { describeServer } from './server-url.ts';
import { HASH_EXCHANGE, mismatch, type QueueType, queueArguments, unsupportedType } from './topology-rules.ts';

const ACCESS_REFUSED = 403;
const NOT_FOUND = 404;
/** Should we be killed, the broker removes what we made after this long. */
const PROBE_LIFE_MS = 60_000;
const STEP_LIMIT_MS = 15_000;

/** What a broker says of itself, and how we are connected to it. */
export interface BrokerFacts {
  /** The address, without user and password. */
  readonly where: string;
  readonly product: string;
  readonly version: string;
  readonly link: 'local' | 'tls' | 'plain';
  readonly login: string | undefined;
  readonly vhost: string;
  /** As agreed with the broker. */
  readonly heartbeatSeconds: number;
}

/** `trusted`: it exists, and we may not ask with which settings. */
export type ExchangeState = 'absent' | 'fits' | 'trusted' | HcpError;

export interface QueueCounts {
  readonly waiting: number;
  readonly consumers: number;
}

export type QueueState =
  | { readonly state: 'absent' }
  | ({ readonly state: 'trusted' } & QueueCounts)
  | ({ readonly state: 'fits'; readonly profile: QueueProfile; readonly type: QueueType } & QueueCounts)
  | ({ readonly state: 'differs'; readonly difference: string } & QueueCounts);

/** What a harness has to be allowed to do, in this order. */
export type Deed = 'declare' | 'bind' | 'consume' | 'publish';

export interface DeedOutcome {
  readonly deed: Deed;
  /** What it was done to. */
  readonly subject: string;
  /** `untried`: an earlier refusal, or an exchange that does not exist yet, left nothing to do it to. */
  readonly outcome: 'done' | 'refused' | 'untried';
  /** The broker's words. */
  readonly refusal?: string;
}

const SHAPES = [
  ['safe', 'quorum'],
  ['spec', 'quorum'],
  ['safe', 'classic'],
  ['spec', 'classic'],
] as const satisfies readonly (readonly [QueueProfile, QueueType])[];

/**
 * Connects to look around. What it makes has a name nobody uses and is gone afterwards. Rejects with
 * `transport_unreachable`; a URL that cannot work throws `TypeError`.
 */
export async function probeBroker(url: string): Promise<BrokerProbe> {
  const options = resolveAmqpOptions({ url });
  const socket = new AbortController();
  return new BrokerProbe(options, await dial(options, 'doctor', socket), socket);
}

/** A look at a broker through one connection. A step rejects with `transport_lost` when the broker ends it or is silent. */
export class BrokerProbe implements AsyncDisposable {
  readonly facts: BrokerFacts;
  readonly #connection: ChannelModel;
  readonly #options: ResolvedAmqpOptions;
  readonly #socket: AbortController;
  readonly #over: Promise<never>;
  #fatal: unknown;
  readonly #mark = `doctor-${randomBytes(6).toString('hex')}`;

  constructor(options: ResolvedAmqpOptions, connection: ChannelModel, socket: AbortController) {
    this.#options = options;
    this.#connection = connection;
    this.#socket = socket;
    this.facts = factsOf(options, connection);
    this.#over = new Promise((_, reject) => {
      const end = (why: string, cause?: unknown) => reject(new HcpError('transport_lost', why, { cause }));
      connection.on('error', (error: Error) => {
        this.#fatal = error;
        end(`The broker ended the connection: ${error.message}`, error);
      });
      connection.on('close', () => end('The broker closed the connection'));
      // It answers nothing more on this connection until the alarm is over.
      connection.on('blocked', (reason) => end(`The broker is out of resources and accepts nothing: ${reason}`));
    });
    this.#over.catch(() => {}); // asked for by whatever step runs
  }

  async exchange(name: ExchangeName): Promise<ExchangeState> {
    return this.#step(async (scratch) => {
      if (await scratch.attempt((channel) => channel.checkExchange(name))) return 'absent';
      const refusal = await scratch.attempt((channel) =>
        channel.assertExchange(name, EXCHANGES[name], { durable: true }),
      );
      if (refusal === undefined) return 'fits';
      return refusal.code === ACCESS_REFUSED ? 'trusted' : mismatch(`Exchange ${name}`, refusal);
    });
  }

  /** Compares a queue with every shape in which we declare it. Makes none: one that is absent is not asked further. */
  async queue(declare: (profile: QueueProfile) => QueueDeclaration): Promise<QueueState> {
    const { name } = declare('safe');
    const counts = await this.counts(name);
    if (counts === undefined) return { state: 'absent' };
    return this.#step(async (scratch) => {
      const differences: string[] = [];
      for (const [profile, type] of SHAPES) {
        const args = queueArguments(declare(profile), type);
        const refusal = await scratch.attempt((channel) =>
          channel.assertQueue(name, { durable: true, arguments: args }),
        );
        if (refusal === undefined) return { state: 'fits', profile, type, ...counts };
        if (refusal.code === ACCESS_REFUSED) return { state: 'trusted', ...counts };
        differences.push(mismatch(`Queue ${name}`, refusal).message);
      }
      // The first shape is the one we would declare.
      return { state: 'differs', difference: differences[0] ?? '', ...counts };
    });
  }

  /** How many messages and consumers a queue has; `undefined` when there is no such queue. */
  async counts(name: string): Promise<QueueCounts | undefined> {
    return this.#step(async (scratch) => {
      let counts: QueueCounts | undefined;
      const refusal = await scratch.attempt(async (channel) => {
        const { messageCount: waiting, consumerCount: consumers } = await channel.checkQueue(name);
        counts = { waiting, consumers };
      });
      if (refusal !== undefined && refusal.code !== NOT_FOUND) {
        throw new HcpError('topology_forbidden', `Queue ${name} cannot be looked at: ${refusal.text}`);
      }
      return counts;
    });
  }

  /** Does to a queue beside `queue` what a harness does to that one, and publishes where it publishes. */
  async rights(queue: QueueDeclaration, publishTo: ExchangeName): Promise<readonly DeedOutcome[]> {
    const source: ExchangeName = publishTo === 'hcp.events' ? 'hcp.commands' : 'hcp.events';
    const present = new Set<ExchangeName>();
    for (const exchange of [source, publishTo]) {
      if ((await this.exchange(exchange)) !== 'absent') present.add(exchange);
    }
    const probe: QueueDeclaration = { ...queue, name: `${queue.name}.${this.#mark}` };
    return this.#step(async (scratch) => {
      const outcomes: DeedOutcome[] = [];
      const attempt = async (
        deed: Deed,
        subject: string,
        isPossible: boolean,
        act: Parameters<Scratch['attempt']>[0],
      ) => {
        const refusal = isPossible ? await scratch.attempt(act) : undefined;
        const isRefused = refusal !== undefined && !isOnlyTopic(refusal.text);
        if (isRefused) outcomes.push({ deed, subject, outcome: 'refused', refusal: refusal.text });
        else outcomes.push({ deed, subject, outcome: isPossible ? 'done' : 'untried' });
        return isPossible && !isRefused;
      };
      const args = { ...queueArguments(probe, 'quorum'), 'x-expires': PROBE_LIFE_MS };
      const made = await attempt('declare', probe.name, true, (channel) =>
        channel.assertQueue(probe.name, { durable: true, arguments: args }),
      );
      await attempt('bind', source, made && present.has(source), (channel) =>
        channel.bindQueue(probe.name, source, this.#mark),
      );
      await attempt('consume', probe.name, made, async (channel) => {
        const { consumerTag } = await channel.consume(probe.name, () => {});
        await channel.cancel(consumerTag);
      });
      await attempt('publish', publishTo, present.has(publishTo), async (channel) => {
        // To nobody, and gone at once from the queue of whoever listens to everything.
        channel.publish(publishTo, this.#mark, Buffer.of(), { expiration: 0, type: 'doctor' });
        // A publish has no answer: a refusal comes before that of the next question.
        await channel.checkExchange(publishTo);
      });
      if (made) await scratch.attempt((channel) => channel.deleteQueue(probe.name));
      return outcomes;
    });
  }

  /** Whether the broker can spread events over partitions. To be asked last: RabbitMQ 3 hangs up on an unknown type. */
  async hashExchange(callerId: string): Promise<'there' | 'forbidden' | HcpError> {
    const name = `hcp.hash.${callerId}.${this.#mark}`;
    const { type, arguments: args } = HASH_EXCHANGE;
    const refused = (refusal: Refusal) =>
      unsupportedType('Partitioning', refusal) ?? mismatch(`Exchange ${name}`, refusal);
    try {
      return await this.#step(async (scratch) => {
        const refusal = await scratch.attempt((channel) =>
          channel.assertExchange(name, type, { durable: false, autoDelete: true, arguments: args }),
        );
        if (refusal !== undefined) return refusal.code === ACCESS_REFUSED ? 'forbidden' : refused(refusal);
        await scratch.attempt((channel) => channel.deleteExchange(name));
        return 'there';
      });
    } catch (error) {
      const fatal = refusalOf(this.#fatal);
      if (fatal === undefined) throw error;
      return refused(fatal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // An answer that does not come, because the connection is blocked or gone, is not waited for.
    await Promise.race([this.#connection.close(), this.#over]).catch(() => {});
    this.#socket.abort();
  }

  async #step<T>(work: (scratch: Scratch) => Promise<T>): Promise<T> {
    const { clock, logger } = this.#options;
    const silence = Promise.withResolvers<never>();
    const timer = clock.setTimeout(
      () => silence.reject(new HcpError('transport_lost', `The broker said nothing for ${STEP_LIMIT_MS} ms`)),
      STEP_LIMIT_MS,
    );
    const run = async () => {
      await using scratch = new Scratch(this.#connection, logger);
      return await work(scratch);
    };
    try {
      return await Promise.race([run(), this.#over, silence.promise]);
    } finally {
      clock.clearTimeout(timer);
    }
  }
}

function factsOf({ server, link, login }: ResolvedAmqpOptions, { connection }: ChannelModel): BrokerFacts {
  const { product, version } = connection.serverProperties;
  // What was agreed is a field of amqplib's connection that its types leave out.
  const { heartbeat } = connection as { heartbeat?: number };
  return {
    where: describeServer(server),
    product,
    version,
    link,
    login,
    vhost: server.vhost,
    heartbeatSeconds: heartbeat ?? 0,
  };
}

/** Topics can be restricted to a harness's own; ours is nobody's, so that refusal says that the exchange itself is open. */
function isOnlyTopic(refusal: string): boolean {
  return /access to topic /.test(refusal);
}
