import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLogger, redact } from '../../shared/logger.ts';
import { verifies } from '../support/verifies.ts';

const CANARY = 'canary-5f3759df';

function logged(fields: object, message = 'Something happened'): string {
  let output = '';
  const destination = new Writable({
    write(chunk, _, done) {
      output += chunk;
      done();
    },
  });
  createLogger({ level: 'debug' }, destination).info(fields, message);
  return output;
}

describe('logger', () => {
  const secrets: [string, object, string?][] = [
    ['a token at the top', { session_token: CANARY }],
    ['a token four levels down', { a: { b: { c: { session_token: CANARY } } } }],
    ['a token in a list', { events: [{ data: { session_token: CANARY } }] }],
    ['a password in a URL', { url: `amqp://alpha:${CANARY}@localhost/hcp` }],
    ['a password with an at sign in a URL', { url: `amqp://alpha:x@${CANARY}@localhost/hcp` }],
    ['a password in an error', { error: new Error(`cannot reach mongodb://u:${CANARY}@h/db`) }],
    ['a token in the cause of an error', { error: new Error('x', { cause: { session_token: CANARY } }) }],
    ['a password in the message', {}, `lost amqp://u:${CANARY}@h`],
    ['a private key', { tls: { key: CANARY, passphrase: CANARY } }],
    ['a raw body', { body: Buffer.from(CANARY) }],
  ];
  for (const [what, fields, message] of secrets) {
    verifies(['HCP-014', 'V-91'], `never writes ${what}`, () => {
      const line = logged(fields, message);
      expect(line).not.toContain(CANARY);
      expect(line).toContain('"msg"');
    });
  }

  verifies('HCP-015', 'writes session, message, sequence and type as fields', () => {
    const fields = { session_id: 's', message_id: 'm', sequence: 4, type: 'event' };
    expect(JSON.parse(logged(fields))).toMatchObject({ ...fields, msg: 'Something happened' });
  });

  it('does not fail on a getter that throws, a cycle, a bigint or a key called __proto__', () => {
    const odd: Record<string, unknown> = JSON.parse('{"__proto__":{"polluted":true}}');
    Object.defineProperty(odd, 'broken', { enumerable: true, get: () => expect.fail('read') });
    odd.self = odd;
    odd.big = 10n;
    expect(logged(odd)).toContain('[unreadable]');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('leaves other values as they are', () => {
    expect(redact({ a: [1, null, true], text: 'see http://example.org/x' })).toEqual({
      a: [1, null, true],
      text: 'see http://example.org/x',
    });
  });
});
