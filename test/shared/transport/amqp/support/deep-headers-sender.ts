// A worker that publishes one message with deeply nested headers. It needs a larger stack than its victim has: encoding
// such headers recurses just as decoding them does.
import { workerData } from 'node:worker_threads';
import { connect } from 'amqplib';

const { url, exchange, routingKey, depth } = workerData;
const connection = await connect(url);
const channel = await connection.createConfirmChannel();
let headers: object = {};
for (let level = 0; level < depth; level++) headers = { a: headers };
channel.publish(exchange, routingKey, Buffer.from('poison'), { persistent: true, headers });
await channel.waitForConfirms();
await connection.close();
