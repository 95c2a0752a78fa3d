import type { EventMessage, TaskAccepted, TaskCompleted, TaskFailed } from '../schemas/types.ts';
import type { Range } from '../session/arrival.ts';
import { isTransition, type SessionState } from '../session/lifecycle.ts';
import type { Row } from '../shared/store/store.ts';

export type ResultMessage = TaskCompleted | TaskFailed;

/** A session as its caller knows it. */
export interface Follow {
  readonly callerId: string;
  readonly sessionId: string;
  readonly calleeId: string;
  readonly userId: string | undefined;
  /** Of the `task_submit`. */
  readonly messageId: string;
  /** The last sequence processed; −1 before the first. */
  readonly cursor: number;
  readonly holes: readonly Range[];
  readonly state: SessionState;
  readonly accepted: TaskAccepted;
  readonly result: ResultMessage | undefined;
  /** What `session_closed` said. */
  readonly finalState: SessionState | undefined;
  readonly startedAt: number;
  readonly endedAt: number | undefined;
}

export function followOf(row: Row): Follow {
  const text = (name: string) => (typeof row[name] === 'string' ? String(row[name]) : undefined);
  return {
    callerId: String(row.caller_id),
    sessionId: String(row.session_id),
    calleeId: String(row.callee_id),
    userId: text('user_id'),
    messageId: String(row.message_id),
    cursor: Number(row.last_processed_sequence),
    holes: JSON.parse(String(row.holes)),
    // These were checked when they came, and are written by rowOfFollow alone.
    state: row.state as SessionState,
    accepted: JSON.parse(String(row.accepted)),
    result: typeof row.result === 'string' ? JSON.parse(row.result) : undefined,
    finalState: text('final_state') as SessionState | undefined,
    startedAt: Number(row.started_at),
    endedAt: typeof row.ended_at === 'number' ? row.ended_at : undefined,
  };
}

export function rowOfFollow(follow: Follow): Row {
  return {
    caller_id: follow.callerId,
    session_id: follow.sessionId,
    callee_id: follow.calleeId,
    user_id: follow.userId ?? null,
    message_id: follow.messageId,
    last_processed_sequence: follow.cursor,
    holes: JSON.stringify(follow.holes),
    state: follow.state,
    accepted: JSON.stringify(follow.accepted),
    result: follow.result === undefined ? null : JSON.stringify(follow.result),
    final_state: follow.finalState ?? null,
    started_at: follow.startedAt,
    ended_at: follow.endedAt ?? null,
    open: follow.endedAt === undefined ? 1 : null,
  };
}

/** What an event tells about its session. The callee is authoritative: odd transitions are followed too (HCP-231). */
export function observe(follow: Follow, { payload }: EventMessage): Follow {
  const { event_type: type, data } = payload;
  const moved = { ...follow, cursor: payload.sequence };
  if (type === 'state_changed') return { ...moved, state: data.to_state as SessionState };
  if (type === 'session_closed') {
    const finalState = data.final_state as SessionState;
    return { ...moved, state: finalState, finalState };
  }
  return moved;
}

/** Whether the callee has agreed to this extension (P9). */
export function isInForce(extension: string, { accepted }: Follow): boolean {
  return Object.hasOwn(accepted.payload.extensions ?? {}, extension);
}

/** Whether missing events can be had again. */
export function canReplay(follow: Follow): boolean {
  return isInForce('replay/1', follow);
}

/** Only the callee that accepted speaks for a session, by its login if the broker told us one. */
export function isForeign(
  { calleeId, userId }: Pick<Follow, 'calleeId' | 'userId'>,
  appId: string | undefined,
  login: string | undefined,
): boolean {
  if (userId !== undefined) return login !== userId;
  return appId !== undefined && appId !== calleeId;
}

/** A recovery in place is tolerated: others do it so (D-13). */
export function isOddTransition({ payload: { event_type: type, data } }: EventMessage): boolean {
  if (type !== 'state_changed' || isTransition(data.from_state, data.to_state)) return false;
  return data.from_state !== data.to_state || data.reason !== 'recovered_from_checkpoint';
}
