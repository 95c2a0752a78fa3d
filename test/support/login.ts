import type { Transport } from '../../shared/transport/transport.ts';

/** The same transport, with every delivery under the login given. */
export function under(transport: Transport, login: () => string): Transport {
  return new Proxy(transport, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== 'consume') return typeof value === 'function' ? value.bind(target) : value;
      const consume: Transport['consume'] = (queue, handler, options) =>
        target.consume(
          queue,
          (delivery) =>
            handler({
              ...delivery,
              properties: { ...delivery.properties, userId: login() },
              ack: () => delivery.ack(),
              retry: () => delivery.retry(),
              reject: () => delivery.reject(),
            }),
          options,
        );
      return consume;
    },
  });
}
