import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { choosePartition } from '../../../../shared/transport/embedded/partition-choice.ts';

const names = (count: number) => Array.from({ length: count }, (_, index) => `hcp.evt.alpha.p${index}`);
const partitions = fc.integer({ min: 1, max: 16 }).map(names);

describe('the choice of a partition', () => {
  it('does not depend on the order of the queues', () => {
    const shuffled = partitions.chain((queues) =>
      fc.tuple(fc.constant(queues), fc.shuffledSubarray(queues, { minLength: queues.length })),
    );
    fc.assert(
      fc.property(fc.uuid(), shuffled, (session, [queues, others]) => {
        expect(choosePartition(session, others)).toBe(choosePartition(session, queues));
      }),
    );
  });

  it('moves a session to a new queue or not at all when one is added', () => {
    fc.assert(
      fc.property(fc.uuid(), partitions, (session, queues) => {
        const added = `hcp.evt.alpha.p${queues.length}`;
        expect([choosePartition(session, queues), added]).toContain(choosePartition(session, [...queues, added]));
      }),
    );
  });

  it('gives every queue its share', () => {
    const counts = new Map<string | undefined, number>();
    for (let index = 0; index < 8000; index++) {
      const session = `${index.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
      const chosen = choosePartition(session, names(8));
      counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
    }
    expect(counts.size).toBe(8);
    for (const count of counts.values()) expect(count).toBeGreaterThan(850); // 1000 each, were it perfect
  });

  it.each([undefined, null, 7, ''])('is one of them also for a correlation id that is none: %s', (correlationId) => {
    expect(names(4)).toContain(choosePartition(correlationId, names(4)));
  });

  it('is none where there is none', () => {
    expect(choosePartition('s', [])).toBeUndefined();
  });

  it('stays what it was: queue files outlive versions', () => {
    const sessions = ['', 'a', '6f1ed002-ab54-4b3d-9f37-2f5d1c0d8a11', '0b8c7a52-1111-4222-8333-444455556666'];
    const chosen = sessions.map((session) => choosePartition(session, names(4)));
    expect(chosen).toEqual(['hcp.evt.alpha.p3', 'hcp.evt.alpha.p3', 'hcp.evt.alpha.p0', 'hcp.evt.alpha.p3']);
  });
});
