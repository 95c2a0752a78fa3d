import type { Clock } from '../../shared/clock.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { wrapTransport } from '../wrap-transport.ts';
import { RecordingWriter } from './recording.ts';

/**
 * The same transport for a caller, which writes every command the caller sends and everything it receives to a file, as it
 * is and in order; session tokens alone are replaced. Throws where the file exists already.
 */
export function recordSession(
  transport: Transport,
  { file, clock }: { readonly file: string | URL; readonly clock?: Clock },
): Transport {
  const writer = new RecordingWriter(file, clock);
  return wrapTransport(transport, {
    publish(message, options) {
      if (message.route.exchange === 'hcp.commands') writer.add('sent', message);
      return transport.publish(message, options);
    },
    consume: (queue, handler, options) =>
      transport.consume(
        queue,
        (delivery) => {
          if (delivery.route.exchange === 'hcp.events') writer.add('received', delivery);
          return handler(delivery);
        },
        options,
      ),
  });
}
