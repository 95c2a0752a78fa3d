import { setTimeout as delay } from 'node:timers/promises';
import { type ContainerRuntimeClient, GenericContainer, getContainerRuntimeClient } from 'testcontainers';
import type { MongodbKind, RabbitmqSettings, Started } from './description.ts';
import { freePorts, poll } from './processes.ts';
import { plugins, tlsFiles, tlsListener } from './rabbitmq-config.ts';
import { initiateReplicaSet, probeMongod, probeMongodb, probeRabbitmq } from './readiness.ts';

const RABBITMQ_IMAGE = 'rabbitmq:4';
const MONGODB_IMAGE = 'mongo:8';
const START_MS = 180_000;

/** The Docker engine, or a rejection within seconds. */
export async function dockerEngine(): Promise<ContainerRuntimeClient> {
  const tooLate = delay(5_000, undefined, { ref: false }).then(() => {
    throw new Error('The Docker engine does not answer');
  });
  return Promise.race([getContainerRuntimeClient(), tooLate]);
}

export async function startRabbitmqContainer(settings: RabbitmqSettings): Promise<Started> {
  await dockerEngine();
  const [port, tlsPort] = [await freePort(), await freePort()];
  const container = await new GenericContainer(RABBITMQ_IMAGE)
    .withCopyContentToContainer([
      { content: plugins(settings), target: '/etc/rabbitmq/enabled_plugins' },
      // Last of its folder, so that it has the last word. An empty file is fine.
      { content: tlsListener(settings, '0.0.0.0:5671', '/etc/rabbitmq'), target: '/etc/rabbitmq/conf.d/90-tls.conf' },
      ...tlsFiles(settings).map(([name, content]) => ({ content, target: `/etc/rabbitmq/${name}` })),
    ])
    // A port chosen by Docker changes when the container is started again.
    .withExposedPorts({ container: 5672, host: port }, ...(settings.tls ? [{ container: 5671, host: tlsPort }] : []))
    .withStartupTimeout(START_MS)
    .start();
  const stop = async () => {
    await container.stop();
  };
  const url = `amqp://guest:guest@${container.getHost()}:${port}`;
  const started = await finish(container.getId(), url, stop, probeRabbitmq);
  return { ...started, ...(settings.tls && { tlsUrl: `amqps://guest:guest@${container.getHost()}:${tlsPort}` }) };
}

export async function startMongodbContainer(kind: MongodbKind): Promise<Started> {
  await dockerEngine();
  const port = await freePort();
  const container = await new GenericContainer(MONGODB_IMAGE)
    .withCommand([
      'mongod',
      ...(kind === 'standalone' ? [] : ['--replSet', 'hcp']),
      ...['--bind_ip_all', '--setParameter', 'enableTestCommands=1'],
    ])
    .withExposedPorts({ container: 27017, host: port })
    .withStartupTimeout(START_MS)
    .start();
  const stop = async () => {
    await container.stop();
  };
  const alone = `mongodb://${container.getHost()}:${port}/`;
  if (kind !== 'replica set') return finish(container.getId(), alone, stop, probeMongod);
  // The member's name is true inside the container only, so clients must not look for the other members.
  return finish(container.getId(), `${alone}?directConnection=true`, stop, async (address) => {
    await initiateReplicaSet(address, 'hcp', 'localhost:27017').catch(() => {});
    return probeMongodb(address);
  });
}

/** SIGKILLs what runs in the container. */
export async function killContainer(id: string): Promise<void> {
  const container = (await dockerEngine()).container.getById(id);
  await container.kill({ signal: 'SIGKILL' });
  await container.wait();
}

/** Starts a killed container again, on the same port and data, and resolves when `probe` does. */
export async function startContainer(id: string, probe: () => Promise<string>): Promise<void> {
  await (await dockerEngine()).container.getById(id).start();
  await untilAnswered(id, probe);
}

export async function execInContainer(id: string, command: string[]): Promise<string> {
  const { container: client } = await dockerEngine();
  const { exitCode, stdout, output } = await client.exec(client.getById(id), command);
  if (exitCode !== 0) throw new Error(`${command.slice(0, 2).join(' ')} failed: ${output.trim().slice(-1000)}`);
  return stdout;
}

async function finish(
  id: string,
  url: string,
  stop: () => Promise<void>,
  probe: (url: string) => Promise<string>,
): Promise<Started> {
  try {
    const version = await untilAnswered(id, () => probe(url));
    return { url, version, handle: { kind: 'container', id }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function untilAnswered(id: string, probe: () => Promise<string>): Promise<string> {
  let answer: string | undefined;
  let last: unknown;
  const ask = async () => {
    answer = await probe().catch((error: unknown) => {
      last = error;
      return undefined;
    });
    return answer !== undefined;
  };
  await poll(ask, { timeoutMs: START_MS, what: `container ${id.slice(0, 12)} to answer` }).catch(async (error) => {
    throw new Error(`${error.message}: ${String(last)}`);
  });
  return answer ?? '';
}

async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  if (port === undefined) throw new Error('No free port');
  return port;
}
