import type { Transport } from '../transport.ts';
import { type AmqpOptions, resolveAmqpOptions } from './options.ts';
import { AmqpTransport } from './transport.ts';

export type { AmqpOptions, AmqpTlsOptions, ReconnectOptions } from './options.ts';

/**
 * Connects to RabbitMQ. Rejects with `transport_unreachable` when it cannot be reached or will not have us, and with a
 * `topology_…` error when the exchanges are not what HCP needs; a mistake in the options throws `TypeError`. From then
 * on a lost link is repaired by itself.
 */
export async function connectAmqp(options: AmqpOptions): Promise<Transport> {
  const transport = new AmqpTransport(resolveAmqpOptions(options));
  await transport.open();
  return transport;
}
