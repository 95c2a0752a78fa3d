import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Channel, type ConfirmChannel, type ConsumeMessage, connect } from 'amqplib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectAmqp } from '../../shared/transport/amqp/index.ts';
import { partitionQueue } from '../../shared/transport/topology.ts';
import { describeWith, type RabbitmqControl, rabbitmq } from '../support/services/index.ts';

const DEFINITIONS = new URL('../../docker/definitions.json', import.meta.url);
const VHOST = `hcp-definitions-${randomBytes(4).toString('hex')}`;
const SAFE_EVENT_QUEUE = {
  durable: true,
  arguments: {
    'x-queue-type': 'quorum',
    'x-delivery-limit': 20,
    'x-single-active-consumer': true,
    'x-dead-letter-exchange': 'hcp.dead',
    'x-dead-letter-routing-key': 'hcp.evt.alpha',
    'x-dead-letter-strategy': 'at-least-once',
    'x-overflow': 'reject-publish',
  },
};

interface Definitions {
  users: { name: string; password_hash: string; hashing_algorithm: string; tags: string[] }[];
  vhosts: { name: string }[];
  permissions: { user: string; vhost: string; configure: string; write: string; read: string }[];
  topic_permissions: { user: string; vhost: string; exchange: string; write: string; read: string }[];
  queues: { name: string; vhost: string; durable: boolean; auto_delete: boolean; arguments: object }[];
  [other: string]: object[];
}

describeWith('docker/definitions.json', rabbitmq(), (broker) => {
  const { control } = broker;
  if (control === undefined) {
    it('needs a broker it may change', ({ skip }) => skip('This broker is not ours to change'));
    return;
  }
  const url = (user: string) => {
    const address = new URL(broker.url);
    // The passwords of docker/README.md; the copies of alpha made below share alpha's.
    address.password = user === 'lab' || user === 'admin' ? `${user}-dev` : 'alpha-dev';
    address.username = loginOf(user);
    address.pathname = `/${VHOST}`;
    return address.href;
  };
  const as = <T>(user: string, work: (channel: ConfirmChannel) => Promise<T>) => attempt(url(user), work);

  beforeAll(async () => {
    await control.importDefinitions(JSON.stringify(await copyOfDefinitions()));
    await as('alpha', async (channel) => {
      await channel.assertQueue('hcp.evt.alpha', SAFE_EVENT_QUEUE);
      await channel.bindQueue('hcp.evt.alpha', 'hcp.events', 'alpha.#');
    });
    await as('beta', (channel) => channel.assertQueue('hcp.evt.beta', { durable: true }));
  }, 60_000);
  afterAll(() => remove(control), 60_000);

  describe('lets everybody do their own work', () => {
    it('takes a command from alpha to lab and an event back', async () => {
      await as('alpha', (channel) => publish(channel, 'hcp.commands', 'lab', 'command', { userId: loginOf('alpha') }));
      expect(await as('lab', (channel) => take(channel, 'hcp.cmd.lab'))).toBe('command');

      await as('lab', (channel) =>
        publish(channel, 'hcp.events', 'alpha.s.event', 'event', { userId: loginOf('lab') }),
      );
      expect(await as('alpha', (channel) => take(channel, 'hcp.evt.alpha'))).toBe('event');
    });

    it('keeps what lab rejects in its dead-letter queue, which lab may read', async () => {
      await as('alpha', (channel) => publish(channel, 'hcp.commands', 'lab', 'poison'));
      await as('lab', async (channel) => {
        const message = await next(channel, 'hcp.cmd.lab');
        channel.nack(message, false, false);
      });
      expect(await as('lab', (channel) => take(channel, 'hcp.dead.cmd.lab'))).toBe('poison');
    });

    it('keeps what alpha rejects in its dead-letter queue, which alpha may read', async () => {
      await as('lab', (channel) => publish(channel, 'hcp.events', 'alpha.s.event', 'poison'));
      await as('alpha', async (channel) => {
        const message = await next(channel, 'hcp.evt.alpha');
        channel.nack(message, false, false);
      });
      expect(await as('alpha', (channel) => take(channel, 'hcp.dead.evt.alpha'))).toBe('poison');
    });

    it('takes an event from lab through the partition that alpha has declared', async () => {
      const transport = await connectAmqp({ url: url('alpha') });
      try {
        await transport.declare(partitionQueue('alpha', 0));
        await as('lab', (channel) => publish(channel, 'hcp.events', 'alpha.s.event', 'partitioned'));
        expect(await as('alpha', (channel) => take(channel, 'hcp.evt.alpha.p0'))).toBe('partitioned');
        await transport.remove(partitionQueue('alpha', 0));
      } finally {
        await transport.close();
      }
      // It went to alpha's one queue too, which the other cases use.
      expect(await as('alpha', (channel) => take(channel, 'hcp.evt.alpha'))).toBe('partitioned');
    });

    it.each(['alpha', 'lab', 'gamma'])('lets %s check the topology passively', async (user) => {
      await as(user, async (channel) => {
        for (const exchange of ['hcp.commands', 'hcp.events', 'hcp.dead']) await channel.checkExchange(exchange);
        for (const queue of ['hcp.cmd.lab', 'hcp.dead.cmd.lab', 'hcp.evt.alpha']) await channel.checkQueue(queue);
      });
    });

    it('lets a pre-provisioned caller submit and consume', async () => {
      await as('gamma', (channel) => publish(channel, 'hcp.commands', 'lab', 'from gamma'));
      expect(await as('lab', (channel) => take(channel, 'hcp.cmd.lab'))).toBe('from gamma');
      await as('gamma', (channel) => channel.get('hcp.evt.gamma'));
    });
  });

  describe('refuses', () => {
    it.each<[string, string, (channel: ConfirmChannel) => Promise<unknown>]>([
      ['another caller to bind alpha.#', 'beta', (c) => c.bindQueue('hcp.evt.beta', 'hcp.events', 'alpha.#')],
      ['another caller to bind #', 'beta', (c) => c.bindQueue('hcp.evt.beta', 'hcp.events', '#')],
      ['another caller to bind *.s.event', 'beta', (c) => c.bindQueue('hcp.evt.beta', 'hcp.events', '*.s.event')],
      [
        'another caller to bind alpha.# to its partitions',
        'beta',
        async (c) => {
          await c.assertExchange('hcp.hash.beta', 'x-consistent-hash');
          await c.bindExchange('hcp.hash.beta', 'hcp.events', 'alpha.#');
        },
      ],
      ["another caller to declare alpha's hash exchange", 'beta', (c) => c.assertExchange('hcp.hash.alpha', 'fanout')],
      ["another caller to make a partition of alpha's", 'beta', (c) => c.assertQueue('hcp.evt.alpha.p9')],
      ["another caller to share alpha's partitions", 'beta', (c) => c.bindQueue('hcp.evt.beta', 'hcp.hash.alpha', '1')],
      ["another caller to write to alpha's partitions", 'beta', (c) => publish(c, 'hcp.hash.alpha', 's', 'forged')],
      ["a callee to write to a caller's partitions", 'lab', (c) => publish(c, 'hcp.hash.alpha', 's', 'forged')],
      ["another caller to consume alpha's queue", 'beta', (c) => c.consume('hcp.evt.alpha', () => {})],
      ["another caller to read alpha's dead letters", 'beta', (c) => c.get('hcp.dead.evt.alpha')],
      ["a caller to read lab's commands", 'alpha', (c) => c.get('hcp.cmd.lab')],
      [
        'a caller to bind the dead letters of others',
        'alpha',
        (c) => c.bindQueue('hcp.evt.alpha', 'hcp.dead', 'hcp.cmd.lab'),
      ],
      ['a caller to bind commands', 'alpha', (c) => c.bindQueue('hcp.evt.alpha', 'hcp.commands', 'lab')],
      ['another caller to forge an event', 'beta', (c) => publish(c, 'hcp.events', 'alpha.s.event', 'forged')],
      ['a caller to forge an event for itself', 'alpha', (c) => publish(c, 'hcp.events', 'alpha.s.event', 'forged')],
      ['a caller to use the default exchange', 'beta', (c) => publish(c, '', 'hcp.evt.alpha', 'forged')],
      ['a callee to use the default exchange', 'lab', (c) => publish(c, '', 'hcp.evt.alpha', 'forged')],
      ['a callee to tell a caller outside its list', 'lab', (c) => publish(c, 'hcp.events', 'beta.s.event', 'event')],
      ['a callee to send commands', 'lab', (c) => publish(c, 'hcp.commands', 'lab', 'command')],
      ['a callee to read hcp.commands', 'lab', (c) => c.bindQueue('hcp.cmd.lab', 'hcp.commands', 'other')],
      ['a callee to declare a queue', 'lab', (c) => c.assertQueue('hcp.cmd.other')],
      [
        'a pre-provisioned caller to bind its queue',
        'gamma',
        (c) => c.bindQueue('hcp.evt.gamma', 'hcp.events', 'gamma.#'),
      ],
      ['a caller to redeclare an exchange', 'alpha', (c) => c.assertExchange('hcp.events', 'topic', { durable: true })],
      [
        'a callee to redeclare an exchange',
        'lab',
        (c) => c.assertExchange('hcp.commands', 'direct', { durable: true }),
      ],
    ])('%s', async (_what, user, deed) => {
      await expect(as(user, deed)).rejects.toMatchObject({ code: 403 });
    });

    it.each<[string, string, string, string]>([
      ['caller', 'beta', 'hcp.commands', 'lab'],
      ['callee', 'lab', 'hcp.events', 'alpha.s.event'],
    ])('a %s that names another sender', async (_role, user, exchange, key) => {
      const forged = as(user, (channel) => publish(channel, exchange, key, 'forged', { userId: loginOf('alpha') }));
      await expect(forged).rejects.toMatchObject({ code: 406 });
    });
  });
});

/**
 * The file in a vhost and with logins of this test's own (logins belong to the whole broker), plus `beta`, a second caller
 * like alpha, and `gamma`, the pre-provisioned caller of docker/README.md.
 */
async function copyOfDefinitions(): Promise<Definitions> {
  const definitions: Definitions = JSON.parse(await readFile(DEFINITIONS, 'utf8'));
  const queue = { vhost: 'hcp', durable: true, auto_delete: false, arguments: { 'x-queue-type': 'quorum' } };
  definitions.queues.push({ ...queue, name: 'hcp.evt.gamma' });
  for (const name of ['beta', 'gamma']) {
    const like = <T>(entries: T[]): T[] =>
      entries
        .filter((entry) => /"(name|user)":"alpha"/.test(JSON.stringify(entry)))
        .map((entry) => renamed(entry, name));
    definitions.users.push(...like(definitions.users));
    definitions.permissions.push(...like(definitions.permissions));
    definitions.topic_permissions.push(...like(definitions.topic_permissions));
  }
  for (const permission of definitions.permissions.filter(({ user }) => user === 'gamma')) {
    Object.assign(permission, {
      configure: '^$',
      write: '^hcp\\.commands$',
      read: '^(hcp\\.evt\\.gamma|hcp\\.dead\\.evt\\.gamma)$',
    });
  }
  for (const permission of definitions.topic_permissions.filter(({ user }) => user === 'gamma')) permission.read = '^$';
  for (const user of definitions.users) user.name = loginOf(user.name);
  for (const vhost of definitions.vhosts) vhost.name = VHOST;
  for (const entry of Object.values(definitions).flat()) {
    if ('user' in entry && typeof entry.user === 'string') entry.user = loginOf(entry.user);
    if ('vhost' in entry) entry.vhost = VHOST;
  }
  return definitions;
}

function renamed<T>(entry: T, name: string): T {
  const copy: T = JSON.parse(
    JSON.stringify(entry, (key, value) =>
      // The hash may contain the letters by chance.
      typeof value === 'string' && key !== 'password_hash' ? value.replaceAll('alpha', name) : value,
    ),
  );
  return copy;
}

function loginOf(user: string): string {
  return `${user}-${VHOST}`;
}

async function remove(control: RabbitmqControl): Promise<void> {
  await control.ctl('delete_vhost', VHOST);
  for (const user of ['admin', 'alpha', 'lab', 'beta', 'gamma']) await control.ctl('delete_user', loginOf(user));
}

/** Does `work` on a channel of its own; rejects with the broker's own error when it closes the channel. */
async function attempt<T>(url: string, work: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
  const connection = await connect(url);
  connection.on('error', () => {});
  try {
    const channel = await connection.createConfirmChannel();
    const closed = new Promise<never>((_resolve, reject) => channel.once('error', reject));
    closed.catch(() => {});
    const result = await Promise.race([closed, work(channel)]);
    // Closing the connection alone may overtake an ack that is still on its way out.
    await channel.close();
    return result;
  } finally {
    await connection.close();
  }
}

async function publish(
  channel: ConfirmChannel,
  exchange: string,
  key: string,
  text: string,
  options: { userId?: string } = {},
): Promise<void> {
  channel.publish(exchange, key, Buffer.from(text), { persistent: true, ...options });
  await channel.waitForConfirms().catch((error: unknown) => {
    // The channel's own error event, which says why, comes after this one.
    return new Promise((_resolve, reject) => setImmediate(() => reject(error)));
  });
}

async function take(channel: Channel, queue: string): Promise<string> {
  const message = await next(channel, queue);
  channel.ack(message);
  return message.content.toString();
}

/**
 * Waits, because dead-lettering happens after the reject; and as a consumer, because RabbitMQ refuses `get` on a queue
 * with a single active consumer.
 */
async function next(channel: Channel, queue: string): Promise<ConsumeMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<ConsumeMessage>();
  await channel.prefetch(1);
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (message === null) reject(new Error(`${queue} is gone`));
    else resolve(message);
  });
  const message = await promise;
  await channel.cancel(consumerTag);
  return message;
}
