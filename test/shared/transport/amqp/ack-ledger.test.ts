import { assert, integer, property, shuffledSubarray, tuple } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AckLedger } from '../../../../shared/transport/amqp/ack-ledger.ts';

function ledgerOf(...tags: number[]): AckLedger {
  const ledger = new AckLedger();
  for (const tag of tags) ledger.delivered(tag);
  return ledger;
}

describe('the ack ledger', () => {
  it('acknowledges a run of done deliveries at once', () => {
    const ledger = ledgerOf(1, 2, 3);
    for (const tag of [1, 2, 3]) ledger.ack(tag);
    expect(ledger.flush()).toEqual({ upTo: 3, single: [] });
  });

  it('acknowledges one by one what lies behind a delivery still in hand', () => {
    const ledger = ledgerOf(1, 2, 3, 4);
    for (const tag of [4, 1, 3]) ledger.ack(tag);
    expect(ledger.flush()).toEqual({ upTo: 1, single: [4, 3] });
  });

  it('goes on in one step when the delivery in between is done', () => {
    const ledger = ledgerOf(1, 2, 3, 4);
    ledger.ack(3);
    ledger.flush();
    ledger.ack(1);
    ledger.ack(2);
    ledger.ack(4);
    expect(ledger.flush()).toEqual({ upTo: 4, single: [] });
  });

  it('does not let a rejected delivery stand in the way', () => {
    const ledger = ledgerOf(1, 2);
    ledger.forget(1);
    ledger.ack(2);
    expect(ledger.flush()).toEqual({ upTo: 2, single: [] });
  });

  it('says which ack is the first since the last flush, so that one flush is planned', () => {
    const ledger = ledgerOf(1, 2, 3);
    expect([ledger.ack(2), ledger.ack(1)]).toEqual([true, false]);
    ledger.flush();
    expect(ledger.ack(3)).toBe(true);
  });

  it('has nothing to say twice', () => {
    const ledger = ledgerOf(1);
    ledger.ack(1);
    ledger.flush();
    expect(ledger.flush()).toEqual({ upTo: undefined, single: [] });
  });

  it('tells the broker of each acked delivery once and of no other, in whatever order they are done', () => {
    const tags = Array.from({ length: 20 }, (_, index) => index + 1);
    assert(
      property(tuple(shuffledSubarray(tags), integer({ min: 1, max: 7 })), ([acked, flushEvery]) => {
        const ledger = ledgerOf(...tags);
        const told: number[] = [];
        const flush = () => {
          const { upTo = 0, single } = ledger.flush();
          // What a broker makes of it: everything outstanding up to `upTo`, then the single ones.
          told.push(...tags.filter((tag) => tag <= upTo && !told.includes(tag)), ...single);
        };
        for (const [index, tag] of acked.entries()) {
          ledger.ack(tag);
          if (index % flushEvery === 0) flush();
        }
        flush();
        expect(told.toSorted((a, b) => a - b)).toEqual(acked.toSorted((a, b) => a - b));
      }),
    );
  });
});
