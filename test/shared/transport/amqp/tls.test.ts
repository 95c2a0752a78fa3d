import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AmqpTlsOptions, connectAmqp } from '../../../../shared/transport/amqp/index.ts';
import type { AmqpOptions } from '../../../../shared/transport/amqp/options.ts';
import { commandQueue, commandRoute } from '../../../../shared/transport/topology.ts';
import type { ReceivedProperties, Transport } from '../../../../shared/transport/transport.ts';
import { IMPATIENT } from '../../../support/amqp-harness.ts';
import { withAddress } from '../../../support/amqp-room.ts';
import { type Certificates, makeCertificates } from '../../../support/certificates.ts';
import { Recorder } from '../../../support/recorder.ts';
import {
  describeWith,
  type RabbitmqServer,
  rabbitmq,
  startTlsRabbitmq,
  type Unavailable,
} from '../../../support/services/index.ts';
import { findProgram } from '../../../support/services/processes.ts';
import { startTcpProxy } from '../../../support/tcp-proxy.ts';
import { verifies } from '../../../support/verifies.ts';

const message = { route: commandRoute('lab'), body: Buffer.from('{}'), properties: {} };

/** Sends a message to itself and answers what arrived. */
async function echo(transport: Transport): Promise<ReceivedProperties | undefined> {
  const received = new Recorder<ReceivedProperties>();
  const consumer = await transport.consume(commandQueue('lab'), (delivery) => {
    received.add(delivery.properties);
    delivery.ack();
  });
  await transport.publish(message);
  const [properties] = await received.count(1);
  await consumer.close();
  return properties;
}

/** Where the run's own broker is ours, another one can be started. */
function prerequisites(): RabbitmqServer | Unavailable {
  if (findProgram('openssl') === undefined) return { available: false, reason: 'openssl is not on the PATH' };
  const broker = rabbitmq();
  if (broker.available && broker.control === undefined) return { available: false, reason: 'This broker is not ours' };
  return broker;
}

describeWith('RabbitMQ over TLS', prerequisites(), () => {
  let url = '';
  let ours: Certificates;
  let strangers: Certificates;
  const stack = new AsyncDisposableStack();

  beforeAll(async () => {
    [ours, strangers] = await Promise.all([makeCertificates('lab', 'nobody'), makeCertificates('lab')]);
    const { rabbitmq: broker } = stack.use(await startTlsRabbitmq({ ca: ours.ca, ...ours.server }));
    if (!broker.available) throw new Error(broker.reason);
    url = broker.tlsUrl ?? '';
    await broker.control?.ctl('add_user', 'lab', 'lab');
    await broker.control?.ctl('set_permissions', 'lab', '.*', '.*', '.*');
  }, 300_000);
  afterAll(() => stack.disposeAsync());

  const connect = (tls: AmqpTlsOptions, options: Partial<AmqpOptions> = {}) =>
    connectAmqp({ ...IMPATIENT, url, tls, ...options });
  const refused = (message: RegExp) => ({ code: 'transport_unreachable', retryable: false, message });
  const certificate = { authentication: 'certificate', login: 'lab' } as const;

  verifies('HCP-011', 'works with a broker whose authority we trust', async () => {
    await using transport = await connect({ ca: ours.ca });
    expect(await echo(transport)).toMatchObject({ userId: 'guest' });
  });

  verifies('HCP-011', 'refuses a broker whose authority we do not know', async () => {
    await expect(connect({})).rejects.toMatchObject(refused(/^TLS with amqps:\S+ failed/));
    await expect(connect({ ca: strangers.ca })).rejects.toMatchObject(refused(/^TLS with amqps:\S+ failed/));
  });

  verifies('HCP-011', 'refuses a broker that has the certificate of another host', async () => {
    await expect(connect({ ca: ours.ca, servername: 'elsewhere.example' })).rejects.toMatchObject(
      refused(/^TLS with \S+ failed: .*elsewhere\.example/s),
    );
  });

  verifies('HCP-011', 'logs in by certificate, and the broker vouches for the name in it', async () => {
    const anonymous = withAddress(url, { username: '', password: '' });
    await using transport = await connect({ ca: ours.ca, ...ours.clients.lab }, { url: anonymous, ...certificate });
    expect(await echo(transport)).toMatchObject({ userId: 'lab' });
  });

  it('is refused when the certificate names nobody the broker knows', async () => {
    await expect(connect({ ca: ours.ca, ...ours.clients.nobody }, certificate)).rejects.toMatchObject(
      refused(/refused our certificate/),
    );
  });

  it('is refused when our certificate is of an authority the broker does not know', async () => {
    await expect(connect({ ca: ours.ca, ...strangers.clients.lab }, certificate)).rejects.toMatchObject({
      code: 'transport_unreachable',
    });
  });

  verifies(['HCP-008', 'HCP-010'], 'gets over a link that carries nothing any more', async () => {
    const { hostname: host, port } = new URL(url);
    await using proxy = await startTcpProxy({ host, port: Number(port) });
    await using transport = await connect({ ca: ours.ca }, { url: withAddress(url, { port: String(proxy.port) }) });
    await transport.declare(commandQueue('lab'));
    const lost = Promise.withResolvers<void>();
    transport.watch((status) => status === 'lost' && lost.resolve());
    proxy.freeze();
    const published = transport.publish(message);
    await lost.promise;
    proxy.pass();
    expect(await published).toBe('confirmed');
  });
});
