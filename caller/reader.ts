import type { EventMessage } from '../schemas/types.ts';
import { HcpError } from '../shared/errors.ts';
import type { Store } from '../shared/store/store.ts';
import type { FollowedSession } from './followed-session.ts';
import { cursorWrites } from './jobs.ts';
import type { Item, Lane } from './lane.ts';

export interface ReaderOptions {
  readonly store: Store;
  readonly signal: AbortSignal | undefined;
  /** Told after each event that was read for good. */
  readonly onRead: () => void;
}

/** Events for a loop: each is acknowledged by asking for the next, so that one broken off is had again. */
export async function* readEvents(
  session: FollowedSession,
  { store, signal, onRead }: ReaderOptions,
): AsyncGenerator<EventMessage, void, void> {
  if (session.isBeingRead) throw new TypeError('The events of this session are being read by another loop');
  session.isBeingRead = true;
  const wake = () => session.changed();
  signal?.addEventListener('abort', wake);
  try {
    for (;;) {
      signal?.throwIfAborted();
      if (session.isClosed) throw new HcpError('caller_closed', 'The caller is closed');
      const [item] = session.unread;
      if (item) {
        if (item.event) yield item.event;
        await advance(store, session.lane, item);
        session.unread.shift();
        onRead();
      } else if (isOver(session)) return;
      else await session.nextChange();
    }
  } finally {
    signal?.removeEventListener('abort', wake);
    session.isBeingRead = false;
  }
}

function isOver({ follow }: FollowedSession): boolean {
  return follow.finalState !== undefined || follow.endedAt !== undefined;
}

/** The cursor after what was read, which only grows (HCP-217). */
async function advance(store: Store, lane: Lane, item: Item): Promise<void> {
  const outcome = await store.commit(cursorWrites(new Map([[lane, [item]]])));
  if (outcome !== 'committed')
    throw new HcpError('session_taken_over', 'Another process of this caller follows the session');
  lane.follow = lane.after([item]); // anew: a result may have come meanwhile
}
