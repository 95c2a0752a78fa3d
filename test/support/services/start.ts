import { type MongodbServer, mongodbFrom, type RabbitmqServer, rabbitmqFrom } from './control.ts';
import type {
  MongodbKind,
  RabbitmqSettings,
  ServerDescription,
  ServicesDescription,
  Source,
  Started,
  Unavailable,
} from './description.ts';
import { startMongodbContainer, startRabbitmqContainer } from './docker.ts';
import { startDownloadedMongodb, startLocalMongodb } from './mongodb-local.ts';
import { startPortableMongodb } from './mongodb-portable.ts';
import { startLocalRabbitmq } from './rabbitmq-local.ts';
import { probeMongodb, probeRabbitmq } from './readiness.ts';

/** Servers that were found or started. Disposing stops the ones we started. */
export interface StartedServices extends AsyncDisposable {
  readonly rabbitmq: RabbitmqServer | Unavailable;
  readonly mongodb: MongodbServer | Unavailable;
  /** The same as plain data, for another process. */
  readonly description: ServicesDescription;
}

interface Way {
  readonly source: Source;
  start(): Promise<Started>;
}

const rabbitmqWays = (settings: RabbitmqSettings = {}): readonly Way[] => [
  { source: 'Docker', start: () => startRabbitmqContainer(settings) },
  { source: 'local program', start: () => startLocalRabbitmq(settings) },
];

const mongodbWays = (kind: MongodbKind): readonly Way[] => [
  { source: 'Docker', start: () => startMongodbContainer(kind) },
  { source: 'local program', start: () => startLocalMongodb(kind) },
  { source: 'downloaded program', start: () => startDownloadedMongodb(kind) },
  { source: 'portable build under Wine', start: () => startPortableMongodb(kind) },
];

/**
 * Finds or starts the servers asked for, both at once. Never rejects for a server that cannot be had: its entry says why.
 * Whatever was started ends with this process, also on SIGINT and SIGTERM.
 */
export async function startServices(wanted: { rabbitmq?: boolean; mongodb?: boolean }): Promise<StartedServices> {
  const [rabbitmq, mongodb] = await Promise.all([
    wanted.rabbitmq ? find('HCP_AMQP_URL', probeRabbitmq, rabbitmqWays()) : NOT_WANTED,
    wanted.mongodb ? find('HCP_MONGODB_URL', probeMongodb, mongodbWays('replica set')) : NOT_WANTED,
  ]);
  return {
    rabbitmq: rabbitmqFrom(rabbitmq.description),
    mongodb: mongodbFrom(mongodb.description),
    description: { rabbitmq: rabbitmq.description, mongodb: mongodb.description },
    async [Symbol.asyncDispose]() {
      await Promise.all([rabbitmq.stop(), mongodb.stop()]);
    },
  };
}

/** Starts a RabbitMQ that has a TLS listener too. Never the one of the environment, whose certificates are not ours. */
export async function startTlsRabbitmq(
  tls: NonNullable<RabbitmqSettings['tls']>,
): Promise<AsyncDisposable & { readonly rabbitmq: RabbitmqServer | Unavailable }> {
  const { description, stop } = await firstOf(rabbitmqWays({ tls }));
  return { rabbitmq: rabbitmqFrom(description), [Symbol.asyncDispose]: stop };
}

/** Starts a mongod that no store should accept. Never the one of the environment, which is a proper one. */
export async function startUnfitMongodb(
  kind: Exclude<MongodbKind, 'replica set'>,
): Promise<AsyncDisposable & { readonly mongodb: MongodbServer | Unavailable }> {
  const { description, stop } = await firstOf(mongodbWays(kind));
  return { mongodb: mongodbFrom(description), [Symbol.asyncDispose]: stop };
}

interface Found {
  readonly description: ServerDescription;
  stop(): Promise<void>;
}

const NOT_WANTED: Found = { description: { available: false, reason: 'Not asked for' }, stop: async () => {} };

async function find(variable: string, probe: (url: string) => Promise<string>, ways: readonly Way[]): Promise<Found> {
  const url = process.env[variable];
  // A server named on purpose is used or missed; a silent replacement would hide the mistake.
  if (url !== undefined && url !== '') return fromEnvironment(variable, url, probe);
  const found = await firstOf(ways);
  if (found.description.available) return found;
  return { ...found, description: { available: false, reason: `${variable}: not set; ${found.description.reason}` } };
}

/** Takes the first way that works; without one, the description tells the reason of each. */
async function firstOf(ways: readonly Way[]): Promise<Found> {
  const reasons: string[] = [];
  for (const { source, start } of ways) {
    try {
      const { stop, ...facts } = await start();
      return { description: { available: true, source, ...facts }, stop };
    } catch (error) {
      reasons.push(`${source}: ${messageOf(error)}`);
    }
  }
  return { description: { available: false, reason: reasons.join('; ') }, stop: async () => {} };
}

async function fromEnvironment(variable: string, url: string, probe: (url: string) => Promise<string>): Promise<Found> {
  const stop = async () => {};
  try {
    return { description: { available: true, url, version: await probe(url), source: 'environment' }, stop };
  } catch (error) {
    return { description: { available: false, reason: `${variable}: ${messageOf(error)}` }, stop };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
