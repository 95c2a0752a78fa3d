import type { Clock } from '../clock.ts';
import type { Logger } from '../logger.ts';
import type { Transport } from './transport.ts';

export interface OpenTransportOptions {
  /** Stamped as `userId` on everything published. @default none, or the user of an AMQP URL */
  readonly login?: string;
  /** Allows plain `amqp:` to another machine. @default false */
  readonly allowInsecure?: boolean;
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** @default logs nothing */
  readonly logger?: Logger;
}

/**
 * Opens the transport a URL names: `memory:`, `sqlite:./hcp.db`, `amqp://…` or `amqps://…`. Its driver is loaded only
 * then. For everything else that can be set use `connectMemory`, `connectSqlite` and `connectAmqp`.
 */
export async function openTransport(url: string, options: OpenTransportOptions = {}): Promise<Transport> {
  const { allowInsecure, ...common } = options;
  const [, scheme, rest = ''] = /^([a-z]+):(.*)$/s.exec(url) ?? [];
  switch (scheme) {
    case 'memory': {
      const { connectMemory } = await import('./memory/index.ts');
      return connectMemory(common);
    }
    case 'sqlite': {
      if (rest === '') throw new TypeError('A sqlite: URL names a file, as in sqlite:./hcp.db');
      const { connectSqlite } = await import('./sqlite/index.ts');
      return connectSqlite({ ...common, path: rest });
    }
    case 'amqp':
    case 'amqps': {
      const { connectAmqp } = await import('./amqp/index.ts');
      return connectAmqp({ ...common, url, ...(allowInsecure !== undefined && { allowInsecure }) });
    }
    default:
      // The URL itself stays out of the message: it may hold a password.
      throw new TypeError('A transport URL is memory:, sqlite:<file>, amqp://… or amqps://…');
  }
}
