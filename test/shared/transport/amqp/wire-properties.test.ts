import { context, propagation } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import type { GetMessage } from 'amqplib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { traceContext, traceHeaders } from '../../../../shared/telemetry.ts';
import { commandQueue, commandRoute } from '../../../../shared/transport/topology.ts';
import type { MessageProperties, ReceivedProperties } from '../../../../shared/transport/transport.ts';
import { type AmqpRoom, describeAmqp } from '../../../support/amqp-room.ts';
import { M1, S1 } from '../../../support/messages.ts';
import { Recorder } from '../../../support/recorder.ts';
import { verifies } from '../../../support/verifies.ts';

const PROPERTIES = {
  messageId: M1,
  timestamp: 1_736_929_800,
  correlationId: S1,
  contentType: 'application/json',
  contentEncoding: 'utf-8',
  type: 'event',
  appId: 'lab',
  headers: { 'x-hcp-in-reply-to': M1 },
};

/** Publishes through the transport and takes the message off the queue by plain amqplib. */
async function onTheWire(room: AmqpRoom, properties: MessageProperties): Promise<GetMessage> {
  // A quorum queue adds its own count to the headers.
  const transport = await room.connect({ queueType: 'classic' });
  await transport.declare(commandQueue('bare'));
  expect(await transport.publish({ route: commandRoute('bare'), body: Buffer.from('{}'), properties })).toBe(
    'confirmed',
  );
  const message = await (await room.raw()).get('hcp.cmd.bare', { noAck: true });
  if (message === false) throw new Error('A confirmed message is in its queue');
  return message;
}

describeAmqp('a message on the wire', (room) => {
  verifies(
    ['HCP-002', 'HCP-004'],
    'has every property of the protocol, is persistent and names its sender',
    async () => {
      const { properties, content } = await onTheWire(room, PROPERTIES);
      expect(content.toString()).toBe('{}');
      expect(properties).toEqual({
        messageId: M1,
        timestamp: 1_736_929_800,
        correlationId: S1,
        contentType: 'application/json',
        contentEncoding: 'utf-8',
        deliveryMode: 2,
        type: 'event',
        appId: 'lab',
        userId: new URL(room.url).username,
        headers: { 'x-hcp-in-reply-to': M1 },
        priority: undefined,
        expiration: undefined,
        replyTo: undefined,
        clusterId: undefined,
      });
    },
  );

  verifies(
    'HCP-012',
    'is refused before it is sent when a property is too large for AMQP, by the name of that',
    async () => {
      const transport = await room.connect();
      const send = (properties: MessageProperties, routingKey = 'lab') =>
        transport.publish({ route: { exchange: 'hcp.commands', routingKey }, body: Buffer.from('{}'), properties });
      const deep = Array.from({ length: 40 }).reduce<object>((inner) => ({ inner }), {});
      const tooLarge = (reason: string) => ({ code: 'message_too_large', reason });
      await expect(send({ type: 'é'.repeat(128) })).rejects.toMatchObject(tooLarge('type'));
      await expect(send({}, 'k'.repeat(256))).rejects.toMatchObject(tooLarge('routingKey'));
      await expect(send({ headers: { big: 'x'.repeat(40_000) } })).rejects.toMatchObject(tooLarge('headers'));
      await expect(send({ headers: { deep } })).rejects.toMatchObject(tooLarge('headers'));
      expect(await send({ type: 'x'.repeat(255) })).toBe('unroutable'); // it was sent
    },
  );

  it('is refused when a header has a value AMQP does not know, and the next one is sent', async () => {
    const transport = await room.connect();
    await transport.declare(commandQueue('lab'));
    const send = (headers: Record<string, unknown>) =>
      transport.publish({ route: commandRoute('lab'), body: Buffer.from('{}'), properties: { headers } });
    const [bad, good] = await Promise.allSettled([send({ bad: () => {} }), send({ fine: 1 })]);
    expect([bad, good]).toMatchObject([
      { status: 'rejected', reason: expect.any(TypeError) },
      { status: 'fulfilled', value: 'confirmed' },
    ]);
  });

  it.each(['quorum', 'classic'] as const)(
    'with a forged delivery count is not believed by a %s queue',
    async (queueType) => {
      const transport = await room.connect({ queueType });
      const attempts = new Recorder<number>();
      await transport.consume(commandQueue(queueType), (delivery) => {
        attempts.add(delivery.attempts);
        if (attempts.all.length === 1) delivery.retry();
        else delivery.ack();
      });
      const raw = await room.raw();
      raw.publish('hcp.commands', queueType, Buffer.from('{}'), { headers: { 'x-delivery-count': 19 } });
      expect(await attempts.count(2)).toEqual([0, 1]);
    },
  );
});

describeAmqp('the trace of a message', (room) => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  beforeAll(() => void propagation.setGlobalPropagator(new W3CTraceContextPropagator()));
  afterAll(() => propagation.disable());

  it('travels in the W3C headers and is found again on the other side', async () => {
    const transport = await room.connect();
    const received = new Recorder<ReceivedProperties>();
    await transport.consume(commandQueue('traced'), (delivery) => {
      received.add(delivery.properties);
      delivery.ack();
    });
    const active = propagation.extract(context.active(), { traceparent, tracestate: 'vendor=opaque' });
    const headers = traceHeaders(active);
    expect(headers).toEqual({ traceparent, tracestate: 'vendor=opaque' });
    await transport.publish({ route: commandRoute('traced'), body: Buffer.from('{}'), properties: { headers } });
    const [properties] = await received.count(1);
    expect(traceHeaders(traceContext(properties?.headers))).toEqual(headers);
  });
});
