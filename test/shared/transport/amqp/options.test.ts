import { describe, expect, it } from 'vitest';
import { connectAmqp } from '../../../../shared/transport/amqp/index.ts';
import { type AmqpOptions, resolveAmqpOptions } from '../../../../shared/transport/amqp/options.ts';
import { verifies } from '../../../support/verifies.ts';

const SECRET = 's3cr3t-w0rd';
const URL = `amqp://lab:${SECRET}@127.0.0.1/hcp`;
const TLS_URL = `amqps://lab:${SECRET}@broker.example/hcp`;

/** What no compiler would let through, as JavaScript would pass it. */
const options = (wrong: object): AmqpOptions => ({ url: URL, ...wrong }) as AmqpOptions;

describe('the options of connectAmqp', () => {
  it('have these defaults', () => {
    const { clock, random, logger, ...rest } = resolveAmqpOptions({ url: 'amqps://broker.example' });
    expect(rest).toEqual({
      server: {
        protocol: 'amqps',
        hostname: 'broker.example',
        port: 5671,
        vhost: '/',
        username: 'guest',
        password: 'guest',
      },
      tls: { minVersion: 'TLSv1.2', rejectUnauthorized: true },
      authentication: 'password',
      login: 'guest',
      link: 'tls',
      queueType: 'quorum',
      heartbeatSeconds: 10,
      window: 512,
      confirmTimeoutMs: 30_000,
      reconnect: { firstDelayMs: 1000, maxDelayMs: 60_000, jitter: 0.2 },
      closeTimeoutMs: 10_000,
      maxFrameSize: 1_048_576,
    });
  });

  it.each([
    ['local', { url: 'amqp://localhost' }],
    ['local', { url: 'amqps://127.0.0.1' }],
    ['tls', { url: 'amqps://broker.example' }],
    ['plain', { url: 'amqp://broker.example', allowInsecure: true }],
    ['plain', { url: 'amqps://broker.example', tls: { rejectUnauthorized: false }, allowInsecure: true }],
  ])('tell that the link is %s of %j', (link, options) => {
    expect(resolveAmqpOptions(options).link).toBe(link);
  });

  it('are taken as given', () => {
    const pem = Buffer.from('pem');
    expect(
      resolveAmqpOptions({
        url: TLS_URL,
        tls: { ca: ['one', pem], cert: pem, key: 'key', passphrase: 'word', servername: 'b', minVersion: 'TLSv1.3' },
        authentication: 'certificate',
        heartbeatSeconds: 30,
        reconnect: { firstDelayMs: 5 },
      }),
    ).toMatchObject({
      tls: { ca: ['one', pem], cert: pem, key: 'key', passphrase: 'word', servername: 'b', minVersion: 'TLSv1.3' },
      login: undefined,
      confirmTimeoutMs: 90_000,
      reconnect: { firstDelayMs: 5, maxDelayMs: 60_000, jitter: 0.2 },
    });
  });

  const wrong: [string, object, RegExp][] = [
    ['a misspelt name', { heartbeatSecond: 5 }, /Unknown option heartbeatSecond; did you mean heartbeatSeconds\?/],
    ['no URL', { url: undefined }, /^url must be an amqp:\/\/ or amqps:\/\/ URL$/],
    ['a URL of something else', { url: `http://lab:${SECRET}@127.0.0.1` }, /^url must start with amqp/],
    ['a stray at sign', { url: `amqp://lab:${SECRET}@x@127.0.0.1` }, /^url has an "@" too many/],
    ['a question mark in the password', { url: `amqp://lab:1?${SECRET}@127.0.0.1` }, /^url /],
    ['a hash in the password', { url: `amqp://lab:1#${SECRET}@127.0.0.1` }, /^url /],
    ['a slash in the password', { url: `amqp://lab:1/${SECRET}@127.0.0.1` }, /^url /],
    ['a stray percent sign', { url: `amqp://lab:%${SECRET}@127.0.0.1` }, /^url has a stray "%"/],
    ['settings in the URL', { url: `${URL}?heartbeat=5` }, /^url must have no query/],
    ['two vhosts', { url: `${URL}/more` }, /^url must name one vhost/],
    ['no host', { url: 'amqp:///hcp' }, /^url must name a host|^url is not a URL/],
    ['plain AMQP to another machine', { url: `amqp://lab:${SECRET}@broker.example` }, /allowInsecure/],
    ['TLS settings without TLS', { tls: {} }, /^tls needs an amqps: url$/],
    ['TLS that is no object', { url: TLS_URL, tls: SECRET }, /^tls must be an object$/],
    ['an unknown TLS setting', { url: TLS_URL, tls: { cacert: SECRET } }, /Unknown option tls\.cacert/],
    [
      'blind trust',
      { url: TLS_URL, tls: { rejectUnauthorized: false } },
      /^tls\.rejectUnauthorized: false .*allowInsecure/,
    ],
    ['an old TLS version', { url: TLS_URL, tls: { minVersion: 'TLSv1' } }, /^tls\.minVersion must be/],
    [
      'a certificate login without one',
      { url: TLS_URL, authentication: 'certificate' },
      /needs tls\.pfx, or tls\.cert and/,
    ],
    ['an unknown way to log in', { authentication: 'token' }, /^authentication must be 'password' or 'certificate'/],
    ['an empty login', { login: '' }, /^login must be a text/],
    ['a login AMQP cannot carry', { login: 'x'.repeat(256) }, /^login must be a text/],
    ['an unknown queue type', { queueType: 'stream' }, /^queueType must be 'quorum' or 'classic'/],
    ['no heartbeat', { heartbeatSeconds: 0 }, /^heartbeatSeconds must be an integer from 1 to 60/],
    ['a heartbeat in milliseconds', { heartbeatSeconds: 10_000 }, /^heartbeatSeconds must be/],
    ['a window of nothing', { window: 0 }, /^window must be/],
    ['half a millisecond', { confirmTimeoutMs: 0.5 }, /^confirmTimeoutMs must be/],
    ['a time that is no number', { closeTimeoutMs: '5s' }, /^closeTimeoutMs must be/],
    ['a longer timer than Node has', { closeTimeoutMs: 2 ** 31 }, /^closeTimeoutMs must be/],
    ['frames too small for AMQP', { maxFrameSize: 100 }, /^maxFrameSize must be/],
    ['a negative delay', { reconnect: { firstDelayMs: -1 } }, /^reconnect\.firstDelayMs must be/],
    [
      'a cap below the start',
      { reconnect: { firstDelayMs: 10, maxDelayMs: 5 } },
      /^reconnect\.maxDelayMs must not be below/,
    ],
    ['more than all the jitter', { reconnect: { jitter: 1.5 } }, /^reconnect\.jitter must be a number from 0 to 1/],
    [
      'a misspelt reconnect setting',
      { reconnect: { maxDelay: 5 } },
      /Unknown option reconnect\.maxDelay; did you mean/,
    ],
    ['a yes that is no boolean', { allowInsecure: 'yes' }, /^allowInsecure must be true or false/],
  ];
  it.each(wrong)('are refused before any I/O: %s', async (_what, mistake, text) => {
    const error = await connectAmqp(options(mistake)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: expect.stringMatching(text) });
    expect(`${(error as Error).stack} ${String((error as Error).cause)}`).not.toContain(SECRET);
  });

  verifies('HCP-011', 'let plain AMQP only stay on this machine, unless told', () => {
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]']) {
      expect(resolveAmqpOptions({ url: `amqp://${host}` }).server.protocol).toBe('amqp');
    }
    for (const host of ['broker', '10.0.0.1', 'localhost.example', '127.example']) {
      expect(() => resolveAmqpOptions({ url: `amqp://${host}` })).toThrow(TypeError);
      expect(resolveAmqpOptions({ url: `amqp://${host}`, allowInsecure: true }).server.hostname).toBe(host);
    }
  });
});
