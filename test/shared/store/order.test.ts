import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareText } from '../../../shared/store/order.ts';

describe('compareText', () => {
  it('orders any two texts as their UTF-8 bytes do', () => {
    const edges = fc.constantFrom('a', '\0', '\ud7ff', '\ue000', '\uffff', '😀');
    const text = fc.string({ unit: fc.oneof(edges, fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })) });
    const property = fc.property(text, text, text, (start, a, b) => {
      const [x, y] = [start + a, start + b];
      expect(Math.sign(compareText(x, y))).toBe(Buffer.compare(Buffer.from(x), Buffer.from(y)));
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});
