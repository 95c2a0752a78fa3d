import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Follow } from '../../caller/follow.ts';
import { type Item, Lane } from '../../caller/lane.ts';
import type { EventMessage } from '../../schemas/types.ts';
import { eventObject, S1 } from '../support/messages.ts';
import { verifies } from '../support/verifies.ts';

const NOTHING = () => {};

function follow(more: Partial<Follow> = {}): Follow {
  const base = { callerId: 'alpha', sessionId: S1, cursor: -1, holes: [], state: 'RUNNING', finalState: undefined };
  return { ...base, ...more } as unknown as Follow; // a lane looks at nothing else
}

function item(sequence: number, type = 'progress', data: object = {}): Item {
  const event = eventObject({ event_type: type, sequence, data }) as unknown as EventMessage; // valid enough here
  return { sequence, event, isParked: false, settled: NOTHING, again: NOTHING, lost: NOTHING };
}

/** As the follower does it: what is next goes through, what is early waits. Answers what went through. */
function arrive(lane: Lane, arrived: Item): Item[] {
  const arrival = lane.classify(arrived.sequence, 1000);
  if (arrival === 'early') lane.wait(arrived);
  if (arrival !== 'next') return [];
  lane.pass(arrived);
  return [arrived, ...lane.release()];
}

describe('a lane', () => {
  verifies(
    ['HCP-207', 'HCP-209', 'HCP-210'],
    'lets 1 to n through once and in order, however they are shuffled and repeated',
    () => {
      const shuffled = fc.integer({ min: 1, max: 40 }).chain((length) =>
        fc.array(fc.integer({ min: 1, max: length }), { maxLength: 60 }).chain((repeated) => {
          const all = [...Array.from({ length }, (_, index) => index + 1), ...repeated];
          return fc.tuple(fc.constant(length), fc.shuffledSubarray(all, { minLength: all.length }));
        }),
      );
      fc.assert(
        fc.property(shuffled, ([length, sequences]) => {
          const lane = new Lane(follow());
          const passed = sequences.flatMap((sequence) => arrive(lane, item(sequence)));
          expect(passed.map(({ sequence }) => sequence)).toEqual(Array.from({ length }, (_, index) => index + 1));
          lane.follow = lane.after(passed);
          expect([lane.isIdle, lane.gap, lane.follow.holes]).toEqual([true, undefined, []]);
        }),
        { numRuns: 500 },
      );
    },
  );

  verifies(['HCP-211', 'V-105'], 'names its first gap, and goes on without it when told', () => {
    const lane = new Lane(follow({ cursor: 3 }));
    for (const sequence of [9, 6, 7]) arrive(lane, item(sequence));
    expect([lane.gap, lane.giveUp(), lane.gap]).toEqual([[4, 5], [4, 5], undefined]);
    const released = lane.release();
    expect(released.map(({ sequence }) => sequence)).toEqual([6, 7]);
    expect([lane.gap, lane.after(released).holes, lane.after(released).cursor]).toEqual([[8, 8], [[4, 5]], 7]);
    expect([lane.classify(4, 100), lane.classify(6, 100), lane.classify(8, 100)]).toEqual([
      'late',
      'duplicate',
      'next',
    ]);
  });

  it('stores a hole only with the event behind it', () => {
    const lane = new Lane(follow({ cursor: 3 }));
    arrive(lane, item(6));
    lane.giveUp();
    expect(lane.holesBefore(3)).toEqual([]);
    expect(lane.after(lane.release()).holes).toEqual([[4, 5]]);
  });

  verifies('HCP-213', 'expects the gap before a recovery', () => {
    const lane = new Lane(follow({ cursor: 3 }));
    arrive(lane, item(6, 'state_changed', { to_state: 'RUNNING', reason: 'recovered_from_checkpoint' }));
    expect(lane.isGapExpected).toBe(true);
  });

  verifies(['V-129', 'HCP-224'], 'ends with session_closed: nothing behind it is let through', () => {
    const lane = new Lane(follow({ cursor: 3 }));
    arrive(lane, item(5));
    const passed = arrive(lane, item(4, 'session_closed', { final_state: 'COMPLETED' }));
    expect(passed.map(({ sequence }) => sequence)).toEqual([4]);
    expect([lane.classify(6, 100), lane.classify(3, 100), lane.gap]).toEqual(['over', 'duplicate', undefined]);
    expect(lane.strays().map(({ sequence }) => sequence)).toEqual([5]);
    lane.follow = lane.after(passed);
    expect(lane.isIdle).toBe(true);
  });

  it('counts an event that is being stored as one it has', () => {
    const lane = new Lane(follow({ cursor: 3 }));
    lane.reserve(5);
    expect([lane.classify(5, 100), lane.isIdle]).toEqual(['duplicate', false]);
    lane.unreserve(5);
    expect([lane.classify(5, 100), lane.isIdle]).toEqual(['early', true]);
  });

  verifies('HCP-217', 'starts anew where another process has moved it', () => {
    const lane = new Lane(follow({ cursor: 3 }));
    arrive(lane, item(4));
    arrive(lane, item(6));
    lane.reload(follow({ cursor: 8, holes: [[6, 6]] }));
    expect([5, 6, 8, 9].map((sequence) => lane.classify(sequence, 100))).toEqual([
      ...['duplicate', 'late', 'duplicate', 'next'],
    ]);
    expect(lane.isIdle).toBe(true);
  });
});
