import { type DestinationStream, type LoggerOptions, pino } from 'pino';

/** What the SDK asks of a logger: pino's call shape, structured fields first. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Logs nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

const SECRET_KEYS = new Set([
  'session_token',
  'jwk',
  'sessionToken',
  'token',
  'password',
  'passphrase',
  'secret',
  'authorization',
  'key',
  'pfx',
]);
/** Greedy up to the last at sign: a password may hold one, unescaped. */
const URL_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s"'<>]*@/gi;
const REDACTED = '[redacted]';
const DEEPEST = 12;

/** Takes the user and password out of every URL in a text. */
export function scrubUrls(text: string): string {
  return text.includes('://') ? text.replace(URL_CREDENTIALS, `$1${REDACTED}@`) : text;
}

/**
 * A copy fit for a log: secrets gone at any depth, also inside arrays, errors and URLs (HCP-014). pino's own `redact`
 * takes paths, and a token two levels deeper than the path gets through.
 */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return scrubUrls(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEEPEST) return '[deep]';
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (value instanceof Error) return redactError(value, depth);
  return redactObject(value, depth);
}

function redactError(error: Error, depth: number): object {
  const { name, message, stack, cause } = error;
  const own = redactObject(error, depth) as Record<string, unknown>;
  return {
    ...own,
    type: name,
    message: scrubUrls(message),
    stack: stack === undefined ? undefined : scrubUrls(stack),
    cause: cause === undefined ? undefined : redact(cause, depth + 1),
  };
}

function redactObject(value: object, depth: number): object {
  const copy: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(value)) {
    copy[key] = SECRET_KEYS.has(key) ? REDACTED : redact(read(value, key), depth + 1);
  }
  return copy;
}

/** A getter that throws must not make the log call throw. */
function read(value: object, key: string): unknown {
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return '[unreadable]';
  }
}

/** A pino logger that redacts fields and messages. `options` are pino's; `destination` defaults to standard output. */
export function createLogger(options: LoggerOptions = {}, destination?: DestinationStream): Logger {
  const settings: LoggerOptions = {
    ...options,
    base: options.base ?? null,
    serializers: { err: (error: unknown) => error },
    hooks: {
      logMethod(args, method) {
        const [fields, message] = args as unknown as [object, string];
        method.apply(this, [redact(fields) as object, scrubUrls(message)]);
      },
    },
  };
  return destination === undefined ? pino(settings) : pino(settings, destination);
}
