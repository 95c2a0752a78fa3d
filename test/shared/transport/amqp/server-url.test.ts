import { describe, expect, it } from 'vitest';
import { describeServer, parseServerUrl } from '../../../../shared/transport/amqp/server-url.ts';

describe('an AMQP URL', () => {
  it.each([
    ['amqp://localhost', { port: 5672, vhost: '/', username: 'guest', password: 'guest' }],
    ['amqp://localhost/', { vhost: '/' }],
    ['amqp://localhost/%2F', { vhost: '/' }],
    ['amqps://localhost', { protocol: 'amqps', port: 5671 }],
    [
      'amqp://u%40x:p%2F%3F%23%25@localhost:1234/a%20b',
      { port: 1234, username: 'u@x', password: 'p/?#%', vhost: 'a b' },
    ],
    ['amqp://[::1]:7/v', { hostname: '::1', port: 7, vhost: 'v' }],
    ['amqp://lab:@localhost', { username: 'lab', password: '' }],
  ])('is taken apart: %s', (url, parts) => {
    expect(parseServerUrl(url)).toMatchObject(parts);
  });

  it.each([
    ['amqp://lab:secret@localhost:5672/', 'amqp://localhost:5672/'],
    ['amqps://lab:secret@[::1]/a%2Fb', 'amqps://[::1]:5671/a%2Fb'],
  ])('is shown without its credentials: %s', (url, shown) => {
    expect(describeServer(parseServerUrl(url))).toBe(shown);
  });
});
