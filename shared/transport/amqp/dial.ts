import { type ChannelModel, connect, credentials, type SocketOptions } from 'amqplib';
import { HcpError } from '../../errors.ts';
import type { ResolvedAmqpOptions } from './options.ts';
import { describeServer } from './server-url.ts';

/** RabbitMQ itself gives a handshake this long, whatever the heartbeat. */
const SHORTEST_DIAL_MS = 10_000;

/**
 * Opens one connection, whose socket lives until `controller` is aborted. Rejects with `transport_unreachable`; a broker
 * that says nothing counts as unreachable too.
 */
export async function dial(
  options: ResolvedAmqpOptions,
  purpose: string,
  controller: AbortController,
): Promise<ChannelModel> {
  const { server, clock } = options;
  const limitMs = Math.max(SHORTEST_DIAL_MS, 3000 * options.heartbeatSeconds);
  const timer = clock.setTimeout(() => controller.abort(new Error(`no answer within ${limitMs} ms`)), limitMs);
  // The signal is a socket option of Node that amqplib hands on, and the only way to let go of a socket whose other
  // end has gone silent: amqplib ends it politely and would wait for the kernel to give up.
  const socketOptions: SocketOptions & { signal: AbortSignal } = {
    ...(server.protocol === 'amqps' && options.tls),
    signal: controller.signal,
    noDelay: true,
    keepAlive: true,
    clientProperties: { connection_name: `hcp-sdk ${purpose}` },
    ...(options.authentication === 'certificate' && { credentials: credentials.external() }),
  };
  try {
    return await connect(
      {
        ...server,
        vhost: encodeURIComponent(server.vhost), // amqplib decodes it, also here where it is no URL
        heartbeat: options.heartbeatSeconds,
        maxFrameSize: options.maxFrameSize,
      },
      socketOptions,
    );
  } catch (error) {
    controller.abort(error);
    throw unreachable(controller.signal.reason, options);
  } finally {
    clock.clearTimeout(timer);
  }
}

/** One sentence for each way not to get in. A wrong password does not become right by trying again. */
export function unreachable(
  cause: unknown,
  { server, authentication, login }: Pick<ResolvedAmqpOptions, 'server' | 'authentication' | 'login'>,
): HcpError<'transport_unreachable'> {
  const where = describeServer(server);
  const who = authentication === 'certificate' ? 'our certificate' : `the login "${server.username}"`;
  const { code, message } = cause as { code?: unknown; message?: unknown }; // anything can be thrown; both stay unknown
  const text = `${code ?? ''} ${message ?? ''}`;
  const refused = (sentence: string) =>
    new HcpError('transport_unreachable', sentence, { cause, retryable: false, reason: 'refused' });

  if (text.includes('ACCESS-REFUSED')) return refused(`The broker at ${where} refused ${who}: wrong name or password`);
  if (text.includes('ConnectionOpenOk')) {
    // amqplib does not tell the broker's reason; these are the two there are.
    return refused(`The broker at ${where} has no vhost "${server.vhost}", or does not let "${login ?? who}" into it`);
  }
  if (text.includes('SASL mechanism')) return refused(`The broker at ${where} takes no login by ${authentication}`);
  if (server.protocol === 'amqps' && isTlsFailure(text)) return refused(`TLS with ${where} failed: ${message}`);
  if (code === 'ECONNREFUSED') return new HcpError('transport_unreachable', `Nothing listens at ${where}`, { cause });
  return new HcpError('transport_unreachable', `Cannot reach the broker at ${where}: ${message}`, { cause });
}

function isTlsFailure(text: string): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL|EPROTO|secure TLS connection|handshake/i.test(text);
}
