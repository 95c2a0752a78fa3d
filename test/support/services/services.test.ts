import { randomUUID } from 'node:crypto';
import { connect, type GetMessage } from 'amqplib';
import { MongoClient } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { createVhost, describeWith, freshDatabase, mongodb, rabbitmq, startServices } from './index.ts';

describeWith('the RabbitMQ of this run', rabbitmq(), (broker) => {
  it('carries a message in a vhost of our own', { timeout: 30_000 }, async () => {
    await using vhost = await createVhost(broker);
    const connection = await connect(vhost.url);
    const channel = await connection.createConfirmChannel();
    const { queue } = await channel.assertQueue('', { exclusive: true });

    channel.sendToQueue(queue, Buffer.from('hello'));
    await channel.waitForConfirms();

    expect(textOf(await channel.get(queue, { noAck: true }))).toBe('hello');
    await connection.close();
  });

  it('has the consistent-hash exchange', { timeout: 30_000 }, async () => {
    await using vhost = await createVhost(broker);
    const connection = await connect(vhost.url);
    const channel = await connection.createChannel();
    await channel.assertExchange(`hash-${randomUUID()}`, 'x-consistent-hash', { autoDelete: true });
    await connection.close();
  });
});

describe('a private RabbitMQ', () => {
  it('keeps a persistent message over a kill', { timeout: 180_000 }, async ({ skip }) => {
    await using services = await startServices({ rabbitmq: true });
    const broker = services.rabbitmq;
    if (!broker.available) return skip(broker.reason);
    if (broker.control === undefined) return skip('This broker is not ours to kill');
    const before = await connect(broker.url);
    before.on('error', () => {});
    const publisher = await before.createConfirmChannel();
    publisher.on('error', () => {});
    await publisher.assertQueue('kept', { durable: true });
    publisher.sendToQueue('kept', Buffer.from('still here'), { persistent: true });
    await publisher.waitForConfirms();

    await broker.control.kill();
    await expect(connect(broker.url)).rejects.toThrow();
    await broker.control.start();

    const after = await connect(broker.url);
    const channel = await after.createChannel();
    expect(textOf(await channel.get('kept', { noAck: true }))).toBe('still here');
    await after.close();
  });
});

describeWith('the MongoDB of this run', mongodb(), (server) => {
  it('commits and rolls back transactions', { timeout: 30_000 }, async () => {
    await using database = freshDatabase(server);
    await using client = new MongoClient(database.url);
    const things = client.db().collection<{ _id: string }>('things');
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await things.insertOne({ _id: 'kept' }, { session });
      }),
    );

    const refused = client.withSession((session) =>
      session.withTransaction(async () => {
        await things.insertOne({ _id: 'rolled back' }, { session });
        throw new Error('on purpose');
      }),
    );

    await expect(refused).rejects.toThrow('on purpose');
    expect(await things.find().toArray()).toEqual([{ _id: 'kept' }]);
    expect(client.db().databaseName).toBe(database.name);
  });

  it('fails a command on demand', { timeout: 30_000 }, async ({ skip }) => {
    if (server.control === undefined) return skip('Test commands may be off on a server that is not ours');
    await using database = freshDatabase(server);
    // The application name keeps the failure away from the other users of this server.
    const appName = database.name;
    await using client = new MongoClient(database.url, { appName, retryWrites: false });
    await client.db('admin').command({
      configureFailPoint: 'failCommand',
      mode: { times: 1 },
      data: { failCommands: ['insert'], errorCode: 11_600, appName },
    });

    await expect(client.db().collection('things').insertOne({})).rejects.toMatchObject({ code: 11_600 });
    await expect(client.db().collection('things').insertOne({})).resolves.toMatchObject({ acknowledged: true });
  });
});

function textOf(message: GetMessage | false): string | undefined {
  return message === false ? undefined : message.content.toString();
}
