import { describe, expect, it } from 'vitest';
import type { FaultCode, FoundType } from '../../../shared/messages/fault.ts';
import { DEFAULT_MESSAGE_LIMITS, resolveMessageLimits } from '../../../shared/messages/limits.ts';
import { parseMessage } from '../../../shared/messages/parse.ts';
import type { MessageProperties } from '../../../shared/transport/transport.ts';
import { bytes, eventObject, M1, S1, submitObject, wireProperties } from '../../support/messages.ts';
import { verifies } from '../../support/verifies.ts';

const parse = (value: unknown, properties: Partial<MessageProperties> = {}) =>
  parseMessage(Buffer.isBuffer(value) ? value : bytes(value), wireProperties(properties));

function refusal(value: unknown, properties: Partial<MessageProperties> = {}) {
  const outcome = parse(value, properties);
  if (outcome.ok) throw new Error('was accepted');
  return outcome;
}

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const withInputs = (inputs: string) => JSON.stringify(submitObject()).replace('{"to":3}', inputs);

describe('parseMessage', () => {
  verifies(['HCP-001', 'HCP-005'], 'accepts each message type and hands out a frozen message', () => {
    const outcome = parse(submitObject());
    expect(outcome).toMatchObject({ ok: true, warnings: [], message: { type: 'task_submit', message_id: M1 } });
    expect(outcome.ok && Object.isFrozen(outcome.message.payload)).toBe(true);
    expect(parse(eventObject()).ok).toBe(true);
  });

  const bad: [string, string | string[], unknown, Partial<MessageProperties>, FaultCode, string, FoundType][] = [
    ['an empty body', ['HCP-001', 'V-30'], Buffer.alloc(0), {}, 'not_json', '', 'bytes'],
    ['text that is no JSON', 'V-118', 'hello', {}, 'not_json', '', 'bytes'],
    ['truncated JSON', 'V-30', '{"hcp_version":"1.0"', {}, 'not_json', '', 'bytes'],
    ['bytes after the JSON', 'V-30', `${JSON.stringify(submitObject())}x`, {}, 'not_json', '', 'bytes'],
    ['invalid UTF-8', 'V-30', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), {}, 'not_utf8', '', 'bytes'],
    ['an overlong UTF-8 form', 'V-30', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), {}, 'not_utf8', '', 'bytes'],
    ['a byte order mark', 'HCP-001', `\ufeff${JSON.stringify(submitObject())}`, {}, 'not_json', '', 'bytes'],
    ['gzip bytes', 'HCP-001', Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), {}, 'not_utf8', '', 'bytes'],
    ['NaN as a number', 'HCP-001', withInputs('{"to":NaN}'), {}, 'not_json', '', 'bytes'],
    ['null', 'HCP-001', 'null', {}, 'not_an_object', '', 'null'],
    ['an array', 'HCP-001', '[]', {}, 'not_an_object', '', 'array'],
    ['a text', 'HCP-001', '"hello"', {}, 'not_an_object', '', 'string'],
    [
      'a number beyond all bounds',
      'HCP-007',
      withInputs('{"to":1e999}'),
      {},
      'not_plain_json',
      '/payload/inputs/to',
      'number',
    ],
    ['a million levels', 'HCP-007', nested(500_000), {}, 'too_deep', '', 'bytes'],
    [
      'its own __proto__',
      'HCP-007',
      withInputs('{"__proto__":{"x":1}}'),
      {},
      'prototype_key',
      '/payload/inputs/__proto__',
      'object',
    ],
    [
      'an escaped __proto__',
      'HCP-007',
      withInputs('{"\\u005f_proto__":1}'),
      {},
      'prototype_key',
      '/payload/inputs/__proto__',
      'object',
    ],
    [
      'a repeated key',
      'HCP-001',
      withInputs('{"a":[{"b":1},{"b":1,"c":2,"\\u0062":3}]}'),
      {},
      'duplicate_key',
      '/payload/inputs/a/1/b',
      'other',
    ],
    [
      'a text as content type',
      ['V-33', 'HCP-002'],
      submitObject(),
      { contentType: 'text/plain' },
      'content_type',
      '',
      'other',
    ],
    ['a compressed body', 'V-33', submitObject(), { contentEncoding: 'gzip' }, 'content_encoding', '', 'other'],
    [
      'another major version',
      ['HCP-006', 'V-35', 'V-38', 'V-119'],
      submitObject({}, { hcp_version: '2.0' }),
      {},
      'unsupported_version',
      '/hcp_version',
      'string',
    ],
    ['a version without minor', 'V-37', submitObject({}, { hcp_version: '1' }), {}, 'schema', '/hcp_version', 'string'],
    [
      'a version of three parts',
      'HCP-006',
      submitObject({}, { hcp_version: '1.0.0' }),
      {},
      'schema',
      '/hcp_version',
      'string',
    ],
    [
      'a version that is a number',
      'V-37',
      submitObject({}, { hcp_version: 1 }),
      {},
      'schema',
      '/hcp_version',
      'number',
    ],
    [
      'a missing message id',
      'V-39',
      submitObject({}, { message_id: undefined }),
      {},
      'schema',
      '/message_id',
      'missing',
    ],
    [
      'a message id that is no UUID',
      'V-39',
      submitObject({}, { message_id: 'msg-001' }),
      {},
      'schema',
      '/message_id',
      'string',
    ],
    [
      'a UUID of version 1',
      'V-39',
      submitObject({}, { message_id: '7c9e6679-7425-11e4-944b-e07fc1f90ae7' }),
      {},
      'schema',
      '/message_id',
      'string',
    ],
    [
      'a UUID as urn',
      'V-39',
      submitObject({}, { message_id: `urn:uuid:${M1}` }),
      {},
      'schema',
      '/message_id',
      'string',
    ],
    [
      'a missing timestamp',
      'HCP-001',
      submitObject({}, { timestamp: undefined }),
      {},
      'schema',
      '/timestamp',
      'missing',
    ],
    [
      'a local time',
      'HCP-001',
      submitObject({}, { timestamp: '2025-01-15T08:30:00+02:00' }),
      {},
      'schema',
      '/timestamp',
      'string',
    ],
    [
      'a time with a space',
      'HCP-001',
      submitObject({}, { timestamp: '2025-01-15 08:30:00Z' }),
      {},
      'schema',
      '/timestamp',
      'string',
    ],
    [
      'second 60',
      'HCP-001',
      submitObject({}, { timestamp: '2025-01-15T08:30:60Z' }),
      {},
      'schema',
      '/timestamp',
      'string',
    ],
    [
      '30 February',
      'HCP-001',
      submitObject({}, { timestamp: '2025-02-30T08:30:00Z' }),
      {},
      'schema',
      '/timestamp',
      'string',
    ],
    [
      'a missing session id',
      'HCP-001',
      submitObject({}, { session_id: undefined }),
      {},
      'schema',
      '/session_id',
      'missing',
    ],
    ['a missing type', 'HCP-001', submitObject({}, { type: undefined }), {}, 'schema', '/type', 'missing'],
    ['a missing payload', 'HCP-001', submitObject({}, { payload: undefined }), {}, 'schema', '/payload', 'missing'],
    ['a payload that is an array', 'HCP-001', submitObject({}, { payload: [] }), {}, 'schema', '/payload', 'array'],
    ['an unknown type', ['V-61', 'V-117'], submitObject({}, { type: 'pause' }), {}, 'unknown_type', '/type', 'string'],
    ['a submit with a session', 'V-47', submitObject({}, { session_id: S1 }), {}, 'schema', '/session_id', 'string'],
    ['an abort without a session', 'V-75', submitObject({}, { type: 'abort' }), {}, 'schema', '/session_id', 'null'],
    [
      'a missing caller id',
      'V-40',
      submitObject({ caller_id: undefined }),
      {},
      'schema',
      '/payload/caller_id',
      'missing',
    ],
    [
      'a caller id with a dot',
      'V-41',
      submitObject({ caller_id: 'a.b' }),
      {},
      'schema',
      '/payload/caller_id',
      'string',
    ],
    [
      'a caller id that is a wildcard',
      'V-41',
      submitObject({ caller_id: '#' }),
      {},
      'schema',
      '/payload/caller_id',
      'string',
    ],
    [
      'a caller id with a line break',
      'V-41',
      submitObject({ caller_id: 'a\n' }),
      {},
      'schema',
      '/payload/caller_id',
      'string',
    ],
    ['a missing intent', 'V-42', submitObject({ intent: undefined }), {}, 'schema', '/payload/intent', 'missing'],
    ['inputs that are an array', 'V-42', submitObject({ inputs: [] }), {}, 'schema', '/payload/inputs', 'array'],
    [
      'a limit in years',
      'V-44',
      submitObject({ constraints: { max_duration: 'P1Y' } }),
      {},
      'schema',
      '/payload/constraints/max_duration',
      'string',
    ],
    [
      'a limit of nothing',
      'V-44',
      submitObject({ constraints: { max_duration: 'PT0S' } }),
      {},
      'schema',
      '/payload/constraints/max_duration',
      'string',
    ],
    [
      'a limit in words',
      'V-44',
      submitObject({ constraints: { max_duration: '1h' } }),
      {},
      'schema',
      '/payload/constraints/max_duration',
      'string',
    ],
    [
      'an absurd limit',
      'V-44',
      submitObject({ constraints: { max_duration: 'P99999999999999999999D' } }),
      {},
      'schema',
      '/payload/constraints/max_duration',
      'string',
    ],
    [
      'an unknown data class',
      'V-45',
      submitObject({ constraints: { data_classification: 'T9' } }),
      {},
      'schema',
      '/payload/constraints/data_classification',
      'string',
    ],
    [
      'a confidence above one',
      'V-45',
      submitObject({ constraints: { confidence_threshold: 1.5 } }),
      {},
      'schema',
      '/payload/constraints/confidence_threshold',
      'number',
    ],
    ['a sequence that is text', 'V-115', eventObject({ sequence: '4' }), {}, 'schema', '/payload/sequence', 'string'],
    ['a broken sequence', 'V-115', eventObject({ sequence: 4.5 }), {}, 'schema', '/payload/sequence', 'number'],
    ['a negative sequence', 'V-115', eventObject({ sequence: -1 }), {}, 'schema', '/payload/sequence', 'number'],
    [
      'a sequence beyond 2^53',
      'HCP-007',
      eventObject({ sequence: 2 ** 53 }),
      {},
      'schema',
      '/payload/sequence',
      'number',
    ],
    [
      'progress without its stage',
      'V-114',
      eventObject({ data: { message: 'x' } }),
      {},
      'schema',
      '/payload/data/stage',
      'missing',
    ],
    [
      '150 percent',
      'HCP-005',
      eventObject({ data: { stage: 's', message: 'm', percent: 150 } }),
      {},
      'schema',
      '/payload/data/percent',
      'number',
    ],
    [
      'another session in correlation_id',
      'HCP-002',
      eventObject(),
      { correlationId: M1 },
      'property_mismatch',
      '/session_id',
      'string',
    ],
  ];
  for (const [what, ids, body, properties, code, pointer, found] of bad) {
    verifies(ids, `refuses ${what}, naming rule, place and type`, () => {
      expect(refusal(body, properties).fault).toMatchObject({ code, pointer, found });
    });
  }

  verifies(['HCP-006', 'V-36'], 'accepts a newer minor version with fields it does not know, and keeps them', () => {
    const outcome = parse(submitObject({ future: { a: 1 } }, { hcp_version: '1.7', also: [true] }));
    expect(outcome).toMatchObject({ ok: true, message: { also: [true], payload: { future: { a: 1 } } } });
  });

  verifies('HCP-006', 'accepts an event type it does not know, without judging its data', () => {
    expect(parse(eventObject({ event_type: 'tool_start', data: { tool: 'x' } })).ok).toBe(true);
  });

  it('accepts a message of an extension it does not know by its envelope alone', () => {
    expect(parse(submitObject({}, { type: 'x-pause', session_id: S1 }))).toMatchObject({
      ok: true,
      message: { type: 'x-pause' },
    });
  });

  it('judges a command of an extension it knows by its schema', () => {
    const replay = (payload: object) => parse(submitObject({}, { type: 'x-replay', session_id: S1, payload }));
    expect(replay({ from_sequence: 1, to_sequence: 2 }).ok).toBe(true);
    expect(replay({ from_sequence: 1 })).toMatchObject({ fault: { code: 'schema', pointer: '/payload/to_sequence' } });
  });

  verifies('V-132', 'accepts a task_rejected with a session id', () => {
    const rejected = { reason_code: 'quota', reason_message: 'Too many' };
    expect(parse(submitObject({}, { type: 'task_rejected', session_id: S1, payload: rejected })).ok).toBe(true);
  });

  verifies('V-34', 'warns of a missing content type or encoding and goes on', () => {
    const outcome = parseMessage(bytes(submitObject()), {});
    expect(outcome).toMatchObject({
      ok: true,
      warnings: [expect.stringContaining('content_type'), expect.stringContaining('content_encoding')],
    });
  });

  verifies('HCP-002', 'lets the body win over a differing message_id or type, with a warning', () => {
    const outcome = parse(submitObject(), { messageId: S1, type: 'abort' });
    expect(outcome).toMatchObject({
      ok: true,
      message: { message_id: M1, type: 'task_submit' },
      warnings: [expect.stringContaining('message_id'), expect.stringContaining('type')],
    });
  });

  it('reads ids without regard to case and hands them out in lower case', () => {
    const outcome = parse(eventObject({}, { message_id: M1.toUpperCase(), session_id: S1.toUpperCase() }), {
      correlationId: S1,
    });
    expect(outcome).toMatchObject({ ok: true, warnings: [], message: { message_id: M1, session_id: S1 } });
  });

  it('keeps keys with dots, dollars, NULs, emptiness and a constructor as plain data', () => {
    const inputs = { 'a.b': 1, $where: 2, '': 3, '\0': 4, constructor: { prototype: { polluted: true } } };
    const outcome = parse(submitObject({ inputs }));
    expect(outcome).toMatchObject({ ok: true, message: { payload: { inputs } } });
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  verifies(['V-31', 'V-60'], 'salvages the address of an unreadable submit from its properties', () => {
    const properties = { type: 'task_submit', appId: 'alpha', messageId: M1 };
    expect(refusal('{{{', properties).salvage).toEqual({ type: 'task_submit', appId: 'alpha', messageId: M1 });
  });

  it('salvages session and sequence of an event with bad data', () => {
    const { salvage } = refusal(eventObject({ data: {} }));
    expect(salvage).toEqual({ type: 'event', messageId: M1, sessionId: S1, sequence: 4, appId: 'alpha' });
  });

  verifies('V-41', 'never salvages an address that is no harness id', () => {
    const { salvage } = refusal(submitObject({ caller_id: 'a.b' }), { appId: '#' });
    expect(salvage).toEqual({ type: 'task_submit', messageId: M1 });
  });

  verifies('HCP-014', 'never repeats a value of the message in a fault', () => {
    const secret = 'canary-5f3759df';
    const spoilt = [
      submitObject({ caller_id: secret.repeat(9) }),
      submitObject({ constraints: { priority: secret } }),
      submitObject({ inputs: secret }),
      `{"session_token":"${secret}" oops`,
      eventObject({ data: { stage: 3, message: secret } }),
      submitObject({}, { type: secret, hcp_version: secret }),
    ];
    for (const body of spoilt) expect(JSON.stringify(refusal(body, {}).fault)).not.toContain(secret);
  });

  describe('limits', () => {
    const limits = resolveMessageLimits({ bodyBytes: 2000, depth: 6, keys: 20, textBytes: 100 });
    const outcome = (value: unknown) => {
      const result = parseMessage(bytes(value), wireProperties(), limits);
      return result.ok ? 'ok' : result.fault.code;
    };
    const padded = (size: number) => {
      const text = JSON.stringify(submitObject());
      return text + ' '.repeat(size - text.length);
    };

    verifies(['HCP-012', 'V-60'], 'accept what fits exactly and refuse one more, of each', () => {
      expect([outcome(padded(2000)), outcome(padded(2001))]).toEqual(['ok', 'body_too_large']);
      const levels = (n: number) => withInputs(`{"a":${nested(n)}}`);
      expect([outcome(levels(3)), outcome(levels(4))]).toEqual(['ok', 'too_deep']);
      const keys = (n: number) =>
        submitObject({ inputs: Object.fromEntries(Array.from({ length: n }, (_, i) => [i, i])) });
      expect([outcome(keys(10)), outcome(keys(11))]).toEqual(['ok', 'too_many_keys']);
      const text = (n: number) => submitObject({ intent: 'é'.repeat(n) });
      expect([outcome(text(50)), outcome(text(51))]).toEqual(['ok', 'text_too_long']);
    });

    verifies('HCP-012', 'refuse 16 MiB of spaces without parsing', () => {
      expect(refusal(Buffer.alloc(16 * 1024 * 1024, 0x20)).fault.code).toBe('body_too_large');
    });

    it('count a brace inside a text as text', () => {
      expect(outcome(submitObject({ intent: '{[{["\\"{[{[' }))).toBe('ok');
    });

    it('have defaults below what RabbitMQ and MongoDB stop at', () => {
      expect(DEFAULT_MESSAGE_LIMITS).toEqual({ bodyBytes: 1_048_576, depth: 32, keys: 10_000, textBytes: 262_144 });
    });

    it('refuse a nonsensical or misspelt limit at once', () => {
      expect(() => resolveMessageLimits({ depth: 0 })).toThrow(
        new TypeError('limits.depth must be a positive integer'),
      );
      expect(() => resolveMessageLimits({ dept: 3 } as object)).toThrow(/limits.dept is unknown; known are bodyBytes/);
    });
  });
});
