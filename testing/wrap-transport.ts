import type { Delivery, Transport } from '../shared/transport/transport.ts';

/** A transport that is another one, but for these methods. */
export function wrapTransport(
  inner: Transport,
  { publish, consume, close }: Partial<Pick<Transport, 'publish' | 'consume' | 'close'>>,
): Transport {
  const end = close ?? (() => inner.close());
  return {
    login: inner.login,
    link: inner.link,
    get status() {
      return inner.status;
    },
    watch: (listener) => inner.watch(listener),
    declare: (queue) => inner.declare(queue),
    remove: (queue) => inner.remove(queue),
    retire: (queue) => inner.retire(queue),
    publish: publish ?? ((message, options) => inner.publish(message, options)),
    consume: consume ?? ((queue, handler, options) => inner.consume(queue, handler, options)),
    close: end,
    [Symbol.asyncDispose]: end,
  };
}

/** A delivery that is another one, but for how it is settled. */
export function wrapDelivery(inner: Delivery, settle: (how: 'ack' | 'retry' | 'reject') => void): Delivery {
  const { body, properties, route, redelivered, attempts } = inner;
  return {
    ...{ body, properties, route, redelivered, attempts },
    ack: () => settle('ack'),
    retry: () => settle('retry'),
    reject: () => settle('reject'),
  };
}
