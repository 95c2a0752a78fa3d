import { type Clock, systemClock } from '../../clock.ts';
import { type Logger, silentLogger } from '../../logger.ts';
import { isLoopback } from '../../loopback.ts';
import {
  booleanOption,
  choiceOption,
  fractionOption,
  integerOption,
  LONGEST_TIMER_MS,
  refuseUnknownOptions,
} from '../../option-checks.ts';
import { type AmqpServer, parseServerUrl } from './server-url.ts';

/** What Node's TLS socket is given; see `tls.createSecureContext`. */
export interface AmqpTlsOptions {
  /** Whom we trust, instead of the well-known authorities. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[];
  readonly cert?: string | Uint8Array;
  readonly key?: string | Uint8Array;
  /** Certificate and key in one PKCS#12 file. */
  readonly pfx?: string | Uint8Array;
  /** Of `key` or `pfx`. */
  readonly passphrase?: string;
  /** The name the broker's certificate must carry. @default the URL's host */
  readonly servername?: string;
  /** @default 'TLSv1.2' */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** `false` trusts any certificate, and needs `allowInsecure`. @default true */
  readonly rejectUnauthorized?: boolean;
}

export interface ReconnectOptions {
  /** Wait before the first new try; each further one waits twice as long. @default 1000 */
  readonly firstDelayMs?: number;
  /** @default 60000 */
  readonly maxDelayMs?: number;
  /** Up to this fraction is added at random, so that a thousand clients do not come back at once. @default 0.2 */
  readonly jitter?: number;
}

export interface AmqpOptions {
  /** `amqp://user:password@host:port/vhost` or `amqps://…`, everything percent-encoded. */
  readonly url: string;
  /** Only with `amqps:`. */
  readonly tls?: AmqpTlsOptions;
  /** `certificate`: the broker takes our name from the client certificate (SASL EXTERNAL). @default 'password' */
  readonly authentication?: 'password' | 'certificate';
  /** Our name as the broker knows it, stamped on each message. @default the URL's user; none with a certificate */
  readonly login?: string;
  /** Lets plain `amqp:` leave this machine, and `rejectUnauthorized: false`. @default false */
  readonly allowInsecure?: boolean;
  /** What queues are declared as. Say what the operator made when the queues are not ours to declare. @default 'quorum' */
  readonly queueType?: 'quorum' | 'classic';
  /** A dead link is noticed after two to three of these. @default 10 */
  readonly heartbeatSeconds?: number;
  /** How many publishes may be unconfirmed; further ones wait. @default 512 */
  readonly window?: number;
  /** Unconfirmed publishes and not one answer for this long: the link is dead. @default three heartbeats */
  readonly confirmTimeoutMs?: number;
  readonly reconnect?: ReconnectOptions;
  /** How long `close` waits for handlers and confirms. @default 10000 */
  readonly closeTimeoutMs?: number;
  /** A broker that sends a larger frame is hung up on. @default 1048576 */
  readonly maxFrameSize?: number;
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** For the jitter. @default Math.random */
  readonly random?: () => number;
  /** @default logs nothing */
  readonly logger?: Logger;
}

type Bytes = string | Buffer;

/** {@link AmqpTlsOptions} as the socket takes them. */
export interface ResolvedTls {
  readonly ca?: Bytes[];
  readonly cert?: Bytes;
  readonly key?: Bytes;
  readonly pfx?: Bytes;
  readonly passphrase?: string;
  readonly servername?: string;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly rejectUnauthorized: boolean;
}

export interface ResolvedAmqpOptions {
  readonly server: AmqpServer;
  readonly tls: ResolvedTls;
  readonly authentication: 'password' | 'certificate';
  readonly login: string | undefined;
  readonly link: 'local' | 'tls' | 'plain';
  readonly queueType: 'quorum' | 'classic';
  readonly heartbeatSeconds: number;
  readonly window: number;
  readonly confirmTimeoutMs: number;
  readonly reconnect: Required<ReconnectOptions>;
  readonly closeTimeoutMs: number;
  readonly maxFrameSize: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

// As objects, so that the compiler misses none.
const OPTION_NAMES = Object.keys({
  url: 0,
  tls: 0,
  authentication: 0,
  login: 0,
  allowInsecure: 0,
  queueType: 0,
  heartbeatSeconds: 0,
  window: 0,
  confirmTimeoutMs: 0,
  reconnect: 0,
  closeTimeoutMs: 0,
  maxFrameSize: 0,
  clock: 0,
  random: 0,
  logger: 0,
} satisfies Record<keyof AmqpOptions, 0>);
const TLS_NAMES = Object.keys({
  ca: 0,
  cert: 0,
  key: 0,
  pfx: 0,
  passphrase: 0,
  servername: 0,
  minVersion: 0,
  rejectUnauthorized: 0,
} satisfies Record<keyof AmqpTlsOptions, 0>);
const RECONNECT_NAMES = Object.keys({
  firstDelayMs: 0,
  maxDelayMs: 0,
  jitter: 0,
} satisfies Record<keyof ReconnectOptions, 0>);

const MAX_SHORT_STRING_BYTES = 255;
const SMALLEST_FRAME = 4096;

/** Fills in the defaults and refuses what cannot work. Throws `TypeError`, never with a secret in its text. */
export function resolveAmqpOptions(options: AmqpOptions): ResolvedAmqpOptions {
  if (typeof options !== 'object' || options === null) throw new TypeError('connectAmqp needs an options object');
  refuseUnknownOptions(options, OPTION_NAMES);
  const server = parseServerUrl(options.url);
  const allowInsecure = booleanOption(options.allowInsecure, 'allowInsecure');
  if (server.protocol === 'amqp' && !isLoopback(server.hostname) && !allowInsecure) {
    throw new TypeError(
      'Plain amqp: to another machine is readable by anyone on the way: use amqps:, or allowInsecure',
    );
  }
  const authentication = choiceOption(options.authentication, 'authentication', ['password', 'certificate']);
  const heartbeatSeconds = integerOption(options.heartbeatSeconds, 'heartbeatSeconds', {
    fallback: 10,
    min: 1,
    max: 60,
  });
  const tls = resolveTls(options, server, allowInsecure);
  return {
    server,
    tls,
    link: isLoopback(server.hostname)
      ? 'local'
      : server.protocol === 'amqps' && tls.rejectUnauthorized
        ? 'tls'
        : 'plain',
    authentication,
    login: resolveLogin(options.login, authentication === 'password' ? server.username : undefined),
    queueType: choiceOption(options.queueType, 'queueType', ['quorum', 'classic']),
    heartbeatSeconds,
    window: integerOption(options.window, 'window', { fallback: 512, min: 1, max: 65_535 }),
    confirmTimeoutMs: milliseconds(options.confirmTimeoutMs, 'confirmTimeoutMs', 3000 * heartbeatSeconds),
    reconnect: resolveReconnect(options.reconnect ?? {}),
    closeTimeoutMs: milliseconds(options.closeTimeoutMs, 'closeTimeoutMs', 10_000),
    maxFrameSize: integerOption(options.maxFrameSize, 'maxFrameSize', {
      fallback: 1_048_576,
      min: SMALLEST_FRAME,
      max: LONGEST_TIMER_MS,
    }),
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    logger: options.logger ?? silentLogger,
  };
}

function resolveTls(options: AmqpOptions, server: AmqpServer, allowInsecure: boolean): ResolvedTls {
  const { tls } = options;
  if (tls !== undefined && (typeof tls !== 'object' || tls === null)) throw new TypeError('tls must be an object');
  if (server.protocol === 'amqp' && tls !== undefined) throw new TypeError('tls needs an amqps: url');
  if (tls !== undefined) refuseUnknownOptions(tls, TLS_NAMES, 'tls.');
  if (options.authentication === 'certificate' && tls?.pfx === undefined && !(tls?.cert && tls.key)) {
    throw new TypeError("authentication 'certificate' needs tls.pfx, or tls.cert and tls.key");
  }
  const trust = tls?.rejectUnauthorized === false;
  if (trust && !allowInsecure)
    throw new TypeError('tls.rejectUnauthorized: false trusts anybody: it needs allowInsecure');
  return {
    ...(tls?.ca !== undefined && { ca: (Array.isArray(tls.ca) ? tls.ca : [tls.ca]).map(bytes) }),
    ...(tls?.cert !== undefined && { cert: bytes(tls.cert) }),
    ...(tls?.key !== undefined && { key: bytes(tls.key) }),
    ...(tls?.pfx !== undefined && { pfx: bytes(tls.pfx) }),
    ...(tls?.passphrase !== undefined && { passphrase: tls.passphrase }),
    ...(tls?.servername !== undefined && { servername: tls.servername }),
    minVersion: choiceOption(tls?.minVersion, 'tls.minVersion', ['TLSv1.2', 'TLSv1.3']),
    rejectUnauthorized: !trust,
  };
}

function resolveReconnect(reconnect: ReconnectOptions): Required<ReconnectOptions> {
  refuseUnknownOptions(reconnect, RECONNECT_NAMES, 'reconnect.');
  const firstDelayMs = milliseconds(reconnect.firstDelayMs, 'reconnect.firstDelayMs', 1000);
  const maxDelayMs = milliseconds(reconnect.maxDelayMs, 'reconnect.maxDelayMs', Math.max(firstDelayMs, 60_000));
  if (maxDelayMs < firstDelayMs) throw new TypeError('reconnect.maxDelayMs must not be below reconnect.firstDelayMs');
  return { firstDelayMs, maxDelayMs, jitter: fractionOption(reconnect.jitter, 'reconnect.jitter', 0.2) };
}

function resolveLogin(login: unknown, fallback: string | undefined): string | undefined {
  if (login === undefined) return fallback;
  if (typeof login === 'string' && login !== '' && Buffer.byteLength(login) <= MAX_SHORT_STRING_BYTES) return login;
  throw new TypeError('login must be a text of 1 to 255 bytes');
}

function milliseconds(value: unknown, name: string, fallback: number): number {
  return integerOption(value, name, { fallback, min: 1, max: LONGEST_TIMER_MS });
}

function bytes(value: string | Uint8Array): Bytes {
  return typeof value === 'string' ? value : Buffer.from(value);
}
