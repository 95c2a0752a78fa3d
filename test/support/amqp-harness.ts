import { randomBytes } from 'node:crypto';
import { connect } from 'amqplib';
import { type AmqpOptions, connectAmqp } from '../../shared/transport/amqp/index.ts';
import type { TransportHarness } from '../../testing/transport-contract/index.ts';
import {
  createVhost,
  type RabbitmqControl,
  type RabbitmqServer,
  rabbitmq,
  serverLabel,
  settleQueues,
} from './services/index.ts';
import { startTcpProxy } from './tcp-proxy.ts';
import type { TransportFixture } from './transport-fixture.ts';

/** Everything that is a matter of patience, made short. */
export const IMPATIENT = {
  heartbeatSeconds: 1,
  confirmTimeoutMs: 1000,
  reconnect: { firstDelayMs: 5, maxDelayMs: 100 },
} satisfies Partial<AmqpOptions>;

const SLOW_MS = 10;

/** A classic queue only knows that a message was handed out before, not how often. */
const CLASSIC_CANNOT_KEEP = {
  'brings a retried message back first, says so and counts it': 'a classic queue does not count',
  'dead-letters a message that came back twenty times': 'a classic queue does not count',
};

/**
 * RabbitMQ, through a proxy that breaks links. It stops the run's own broker and starts it again, which is fine as test
 * files run one after another.
 */
export function amqpFixture(queueType: 'quorum' | 'classic'): TransportFixture {
  const broker = rabbitmq();
  const adapter = serverLabel(queueType === 'quorum' ? 'amqp' : 'amqp with classic queues', broker);
  if (!broker.available) return { adapter, unavailable: broker.reason, start: noBroker };
  const { control } = broker;
  if (control === undefined) return { adapter, unavailable: 'This broker is not ours to stop', start: noBroker };
  return {
    adapter,
    cannotKeep: queueType === 'classic' ? CLASSIC_CANNOT_KEEP : {},
    start: () => startHarness(broker, control, queueType),
  };
}

async function noBroker(): Promise<never> {
  throw new Error('There is no broker to test with');
}

async function startHarness(
  broker: RabbitmqServer,
  control: RabbitmqControl,
  queueType: 'quorum' | 'classic',
): Promise<TransportHarness & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const vhost = stack.use(await createVhost(broker));
  const otherLogin = `other-${randomBytes(4).toString('hex')}`;
  await control.ctl('add_user', otherLogin, otherLogin);
  stack.defer(async () => void (await control.ctl('delete_user', otherLogin)));
  await control.ctl('set_permissions', '--vhost', vhost.name, otherLogin, '.*', '.*', '.*');
  const { hostname, port } = new URL(vhost.url);
  const proxy = stack.use(await startTcpProxy({ host: hostname, port: Number(port) }));

  const address = (login?: string): string => {
    const url = new URL(vhost.url);
    url.port = String(proxy.port);
    if (login !== undefined) [url.username, url.password] = [login, login];
    return url.href;
  };
  const kept = stack.move();
  return {
    adapter: 'amqp',
    otherLogin,
    open: ({ login, window } = {}) =>
      connectAmqp({ ...IMPATIENT, queueType, url: address(login), ...(window !== undefined && { window }) }),
    faults: {
      async cutLinks() {
        proxy.resetAll();
      },
      async freezeLinks() {
        proxy.freeze();
        return async () => proxy.pass();
      },
      async slowLinks() {
        proxy.slow(SLOW_MS);
        return async () => proxy.pass();
      },
      async stopBroker() {
        await settleQueues(control);
        await control.kill();
        return () => control.start();
      },
      deleteQueue: (name) => deleteQueue(vhost.url, name),
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function deleteQueue(url: string, name: string): Promise<void> {
  const connection = await connect(url);
  const channel = await connection.createChannel();
  await channel.deleteQueue(name);
  await connection.close();
}
