import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from '../../shared/durations.ts';
import { schemaFault } from '../../shared/messages/validators.ts';
import { submitObject } from '../support/messages.ts';
import { verifies } from '../support/verifies.ts';

describe('durations', () => {
  it.each([
    ['PT4H', 14_400_000],
    ['P1D', 86_400_000],
    ['P2W', 1_209_600_000],
    ['P1DT2H3M4.5S', 93_784_500],
    ['PT0.001S', 1],
    ['PT90M', 5_400_000],
    ['P0DT1S', 1000],
  ])('reads %s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  const bad = [
    'P1Y',
    'P1M',
    'PT0S',
    'P0D',
    'P0W',
    '-PT1S',
    'PT1.5H',
    'P',
    'PT',
    'P1DT',
    '1h',
    '',
    'P1W2D',
    'pt1s',
    'PT1S ',
    `P${'9'.repeat(20)}D`,
  ];
  for (const text of bad) {
    verifies('V-44', `refuses ${JSON.stringify(text)}, as the schema does`, () => {
      expect(parseDuration(text)).toBeUndefined();
      expect(schemaFault('task_submit', submitObject({ constraints: { max_duration: text } }))).toBeDefined();
    });
  }

  it('writes what it can read, and the schema accepts it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5e13 }), (ms) => {
        const text = formatDuration(ms);
        expect(parseDuration(text)).toBe(ms);
        expect(schemaFault('task_submit', submitObject({ constraints: { max_duration: text } }))).toBeUndefined();
      }),
    );
  });

  it('refuses to write what is no duration', () => {
    for (const ms of [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => formatDuration(ms)).toThrow(TypeError);
  });
});
