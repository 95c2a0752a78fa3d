import { describe, expect, it } from 'vitest';
import { isUuidV4, newMessageId, newSessionId, parseHarnessId, parseSessionId } from '../../shared/ids.ts';
import { S1 } from '../support/messages.ts';
import { verifies } from '../support/verifies.ts';

describe('ids', () => {
  for (const id of ['alpha', 'A', '9', 'lab-2_b', 'x'.repeat(64)]) {
    verifies('HCP-013', `accepts ${id} as the id of a harness`, () => {
      expect(parseHarnessId(id, 'callerId')).toBe(id);
    });
  }

  for (const id of [
    '',
    'a.b',
    '*',
    '#',
    '-a',
    '_a',
    'x'.repeat(65),
    'a b',
    'a\r\n',
    'ä',
    'a/b',
    'a\0',
    null,
    7,
    ['a'],
  ]) {
    verifies(['HCP-013', 'V-41'], `refuses ${JSON.stringify(id)} as the id of a harness, naming the option`, () => {
      expect(() => parseHarnessId(id, 'callerId')).toThrow(/^callerId must be 1 to 64 letters/);
    });
  }

  it('makes UUIDs of version 4', () => {
    expect([newSessionId(), newMessageId()].every(isUuidV4)).toBe(true);
  });

  it('reads a session id in either case, as lower case', () => {
    expect(parseSessionId(S1.toUpperCase())).toBe(S1);
    expect(() => parseSessionId('session-xyz')).toThrow('sessionId must be a UUID v4, but is "session-xyz"');
  });
});
