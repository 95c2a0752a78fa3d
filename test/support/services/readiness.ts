import { connect } from 'amqplib';
import { MongoClient } from 'mongodb';

/** Logs in to RabbitMQ once; answers its version. Rejects when it does not accept AMQP connections (yet). */
export async function probeRabbitmq(url: string): Promise<string> {
  const connection = await connect(url, { timeout: 5_000 });
  connection.on('error', () => {});
  const { version } = connection.connection.serverProperties;
  await connection.close();
  return String(version);
}

/** Answers MongoDB's version. Rejects unless it is a replica set with a primary that takes writes. */
export async function probeMongodb(url: string): Promise<string> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 2_000, connectTimeoutMS: 2_000 });
  try {
    const admin = client.db('admin');
    const hello = await admin.command({ hello: 1 });
    if (hello.setName === undefined) throw new Error('This MongoDB is no replica set');
    if (hello.isWritablePrimary !== true) throw new Error('The replica set has no primary yet');
    return String((await admin.command({ buildInfo: 1 })).version);
  } finally {
    await client.close();
  }
}

/** Answers the version of the one mongod at `url`, whatever it is part of. */
export async function probeMongod(url: string): Promise<string> {
  const client = new MongoClient(url, { directConnection: true, serverSelectionTimeoutMS: 2_000 });
  try {
    return String((await client.db('admin').command({ buildInfo: 1 })).version);
  } finally {
    await client.close();
  }
}

/** Makes the server at `url` a replica set of one, known to clients as `member`. */
export async function initiateReplicaSet(url: string, name: string, member: string): Promise<void> {
  const client = new MongoClient(url, { directConnection: true, serverSelectionTimeoutMS: 2_000 });
  try {
    await client.db('admin').command({ replSetInitiate: { _id: name, members: [{ _id: 0, host: member }] } });
  } finally {
    await client.close();
  }
}
