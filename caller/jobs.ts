import type { Write } from '../shared/store/store.ts';
import { rowOfFollow } from './follow.ts';
import type { Item, Lane } from './lane.ts';

/** An item and what became of it so far. */
export interface Job {
  readonly lane: Lane;
  readonly item: Item;
  attempts: number;
  /** What it failed with last. */
  error: unknown;
  /** How long to wait before the next try. */
  pauseMs: number;
}

/** Jobs that are done one group after another. Most lanes share one; a lane in trouble has its own. */
export class Queue {
  readonly isShared: boolean;
  /** A job stays until it is done for good. */
  readonly jobs: Job[] = [];
  /** So many are done one by one, to find out which of them cannot be done. */
  cautious = 0;
  /** How long to wait for the store. */
  pauseMs = 0;
  /** How often in a row the store did not answer. */
  awayTimes = 0;
  running: Promise<void> | undefined;

  constructor({ isShared }: { readonly isShared: boolean }) {
    this.isShared = isShared;
  }
}

export function onlyOne(group: readonly Job[]): Job | undefined {
  return group.length === 1 ? group[0] : undefined;
}

export function remove(queue: Queue, isOut: (job: Job) => boolean): Job[] {
  const out = queue.jobs.filter(isOut);
  queue.jobs.splice(0, queue.jobs.length, ...queue.jobs.filter((job) => !isOut(job)));
  return out;
}

export function byLane(group: readonly Job[]): Map<Lane, Item[]> {
  const lanes = new Map<Lane, Item[]>();
  for (const { lane, item } of group) {
    const items = lanes.get(lane);
    if (items) items.push(item);
    else lanes.set(lane, [item]);
  }
  return lanes;
}

/** The cursor of each lane after its items, and the parked rows that are done with. */
export function cursorWrites(lanes: ReadonlyMap<Lane, readonly Item[]>): Write[] {
  return [...lanes].flatMap(([lane, items]): Write[] => {
    const { caller_id, session_id, ...row } = rowOfFollow(lane.after(items));
    const { last_processed_sequence, holes, state, final_state } = row;
    const key = [String(caller_id), String(session_id)];
    return [
      {
        patch: 'follows',
        key,
        set: { last_processed_sequence, holes, state, final_state } as Record<string, string | number | null>,
        // Exactly where we left it: only then is each of these processed once, whoever else follows (HCP-217).
        if: { last_processed_sequence: lane.follow.cursor },
      },
      ...items
        .filter(({ isParked }) => isParked)
        .map(({ sequence }): Write => ({ delete: 'parked', key: [...key, sequence] })),
    ];
  });
}
