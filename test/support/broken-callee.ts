import { randomUUID } from 'node:crypto';
import type { Delivery, MessageProperties, OutgoingMessage, Transport } from '../../shared/transport/transport.ts';
import { wrapTransport } from '../../testing/wrap-transport.ts';

type Json = Record<string, unknown>;

/** A message in parts that can be spoilt. */
export interface Spoken {
  key: string;
  properties: MessageProperties;
  /** The whole envelope. */
  body: Json;
  payload: Json;
  /** The data of an event; otherwise empty. */
  data: Json;
}

/** What a callee gets wrong: in what it says, or in what it hears. */
export interface Fault {
  /** What is said instead; by default what is left in `said`. */
  say?(said: Spoken): readonly Spoken[] | undefined;
  /** `null`: it is not heard at all. By default what is left in `heard`. */
  hear?(heard: Spoken): null | undefined;
  /** Whether a body nobody can read still reaches the callee. @default it does */
  hearSpoilt?(): boolean;
}

/** A transport with which a good callee becomes a bad one. */
export function tampered(inner: Transport, fault: Fault): Transport {
  return wrapTransport(inner, {
    async publish(message, options) {
      const said = open(message);
      const instead = (said && fault.say?.(said)) ?? [said];
      // All of them at once: what is published later must not come in between.
      const sent = instead.map((spoken) => inner.publish(spoken ? seal(message, spoken) : message, options));
      return (await Promise.all(sent))[0] ?? 'confirmed';
    },
    consume: (queue, handler, options) =>
      inner.consume(
        queue,
        (delivery) => {
          const tamperedWith = hearInstead(delivery, fault);
          return tamperedWith ? handler(tamperedWith) : delivery.ack();
        },
        options,
      ),
  });
}

function hearInstead(delivery: Delivery, fault: Fault): Delivery | null {
  const heard = open(delivery);
  if (heard === undefined) return (fault.hearSpoilt?.() ?? true) ? delivery : null;
  if (fault.hear?.(heard) === null) return null;
  const { body, properties } = seal(delivery, heard);
  return {
    ...{ body, properties, route: delivery.route, redelivered: delivery.redelivered, attempts: delivery.attempts },
    ack: () => delivery.ack(),
    retry: () => delivery.retry(),
    reject: () => delivery.reject(),
  };
}

function open({ route, body, properties }: Pick<OutgoingMessage, 'route' | 'body' | 'properties'>): Spoken | undefined {
  try {
    const parsed = JSON.parse(Buffer.from(body).toString());
    const payload = parsed.payload ?? {};
    const data = parsed.type === 'event' ? payload.data : {};
    return { key: route.routingKey, properties: { ...properties }, body: parsed, payload, data };
  } catch {
    return undefined;
  }
}

function seal({ route }: Pick<OutgoingMessage, 'route'>, { key, properties, body }: Spoken): OutgoingMessage {
  return { route: { ...route, routingKey: key }, body: Buffer.from(JSON.stringify(body)), properties };
}

/** Another message, which differs in these fields of its payload, and perhaps in its type. */
export function another({ key, properties, body, data }: Spoken, payload: Json, type = String(body.type)): Spoken {
  const messageId = randomUUID();
  return {
    key: key.replace(/[^.]+$/, type),
    properties: { ...properties, messageId, type },
    body: { ...body, message_id: messageId, type, payload },
    payload,
    data,
  };
}

export function isEvent({ body, payload }: Spoken, type: string): boolean {
  return body.type === 'event' && payload.event_type === type;
}
