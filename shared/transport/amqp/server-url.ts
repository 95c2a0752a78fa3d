/** Where the broker is and who we are, taken apart. */
export interface AmqpServer {
  readonly protocol: 'amqp' | 'amqps';
  readonly hostname: string;
  readonly port: number;
  readonly vhost: string;
  readonly username: string;
  readonly password: string;
}

const DEFAULT_PORT = { amqp: 5672, amqps: 5671 } as const;
/** What an `@`, `/`, `?`, `#` or `%` of a password does when it is not encoded: the rest of the URL means something else. */
const ENCODE = 'write special characters of the user and password as %40, %2F, %3F, %23 and %25';

/** Takes an AMQP URL apart. Its errors never show any part of the URL: any part may turn out to be the password. */
export function parseServerUrl(url: unknown): AmqpServer {
  if (typeof url !== 'string' || url === '') throw new TypeError('url must be an amqp:// or amqps:// URL');
  const protocol = /^(amqps?):\/\//.exec(url)?.[1] as 'amqp' | 'amqps' | undefined; // the pattern allows no other
  if (protocol === undefined) throw new TypeError('url must start with amqp:// or amqps://');
  const parts = parse(url);
  const vhost = parts.pathname.slice(1);
  if (url.split('@').length > 2 || vhost.includes('@')) throw new TypeError(`url has an "@" too many: ${ENCODE}`);
  if (parts.search !== '' || parts.hash !== '') {
    throw new TypeError(`url must have no query and no fragment: settings are options, and ${ENCODE}`);
  }
  if (vhost.includes('/')) throw new TypeError('url must name one vhost: write a "/" in its name as %2F');
  const hostname = parts.hostname.replace(/^\[|\]$/g, '');
  if (hostname === '') throw new TypeError('url must name a host');
  const anonymous = parts.username === '' && parts.password === '';
  return {
    protocol,
    hostname,
    port: parts.port === '' ? DEFAULT_PORT[protocol] : Number(parts.port),
    vhost: decode(vhost) || '/',
    username: anonymous ? 'guest' : decode(parts.username),
    password: anonymous ? 'guest' : decode(parts.password),
  };
}

/** The server without its credentials, for logs and errors. */
export function describeServer({ protocol, hostname, port, vhost }: AmqpServer): string {
  const host = hostname.includes(':') ? `[${hostname}]` : hostname;
  return `${protocol}://${host}:${port}/${vhost === '/' ? '' : encodeURIComponent(vhost)}`;
}

function parse(url: string): URL {
  try {
    return new URL(url);
  } catch {
    // Not as `cause`: Node's error repeats the whole URL.
    throw new TypeError(`url is not a URL: ${ENCODE}`);
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TypeError(`url has a stray "%": ${ENCODE}`);
  }
}
