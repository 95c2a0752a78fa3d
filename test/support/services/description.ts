import type { ServerProcess } from './processes.ts';

/** How a server was found. */
export type Source = 'environment' | 'Docker' | 'local program' | 'downloaded program' | 'portable build under Wine';

/** What a mongod is started as. Only a replica set can do transactions; the other two are for tests of that. */
export type MongodbKind = 'replica set' | 'replica set without initiation' | 'standalone';

/** What a test worker needs to stop and start a server; plain data. */
export type ServerHandle =
  | { readonly kind: 'process'; readonly server: ServerProcess; readonly ctl?: string }
  | { readonly kind: 'container'; readonly id: string };

export interface Unavailable {
  readonly available: false;
  readonly reason: string;
}

/** How a RabbitMQ of our own is to be set up, beyond the usual. */
export interface RabbitmqSettings {
  /** PEM texts for a second listener, with TLS. It checks client certificates by the same CA and takes them for a login. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string };
}

export type ServerDescription =
  | {
      readonly available: true;
      readonly url: string;
      /** Where its TLS listener is, if one was asked for. */
      readonly tlsUrl?: string;
      readonly version: string;
      readonly source: Source;
      /** Absent for a server that is not ours. */
      readonly handle?: ServerHandle;
    }
  | Unavailable;

/** What the global set-up tells the test workers. */
export interface ServicesDescription {
  readonly rabbitmq: ServerDescription;
  readonly mongodb: ServerDescription;
}

/** A server we started, and how to be rid of it. */
export interface Started {
  readonly url: string;
  readonly tlsUrl?: string;
  readonly version: string;
  readonly handle?: ServerHandle;
  stop(): Promise<void>;
}
