import { createMachine, transition } from 'xstate';
import { HcpError } from '../shared/errors.ts';

export const SESSION_STATES = [
  'PENDING',
  'RUNNING',
  'PAUSED',
  'ABORTING',
  'REJECTED',
  'COMPLETED',
  'FAILED',
  'ABORTED',
] as const;
export type SessionState = (typeof SESSION_STATES)[number];

/** What moves a session from one state to another: the nine transitions of HCP, no more (HCP-109). */
export type Move = 'approve' | 'reject' | 'pause' | 'resume' | 'abort' | 'complete' | 'fail' | 'finish';

const lifecycle = createMachine({
  id: 'hcp.session',
  initial: 'PENDING',
  states: {
    PENDING: { on: { approve: 'RUNNING', reject: 'REJECTED' } },
    RUNNING: { on: { pause: 'PAUSED', abort: 'ABORTING', complete: 'COMPLETED', fail: 'FAILED' } },
    PAUSED: { on: { resume: 'RUNNING', abort: 'ABORTING' } },
    ABORTING: { on: { finish: 'ABORTED' } },
    REJECTED: { type: 'final' },
    COMPLETED: { type: 'final' },
    FAILED: { type: 'final' },
    ABORTED: { type: 'final' },
  },
});

/** The state after a move. Throws `session_illegal_transition`: XState itself would ignore a move that does not fit. */
export function advance(from: SessionState, move: Move): SessionState {
  const snapshot = lifecycle.resolveState({ value: from });
  if (!snapshot.can({ type: move })) {
    throw new HcpError('session_illegal_transition', `Cannot ${move} a session in state ${from}`);
  }
  const [next] = transition(lifecycle, snapshot, { type: move });
  // The machine has no other states.
  return next.value as SessionState;
}

export function isTerminal(state: SessionState): boolean {
  return lifecycle.states[state]?.type === 'final';
}

/**
 * What is to be done when something happens to a session: moves to make (`resume+fail` is two), or
 * `nothing`; `note`, log it; `audit`, log it as refused; `refuse`, tell the program that it may not; `emit`, say it, the
 * state stays; `resend` the stored answer; `never`, cannot happen; and after a restart `judge` again, `clean` up again,
 * `flush` the outbox or `stay`.
 */
type Cell =
  | Move
  | 'resume+complete'
  | 'resume+fail'
  | 'pause+resume'
  | 'nothing'
  | 'note'
  | 'audit'
  | 'refuse'
  | 'emit'
  | 'resend'
  | 'never'
  | 'judge'
  | 'clean'
  | 'flush'
  | 'stay';

type Row = readonly [Cell, Cell, Cell, Cell, Cell, Cell, Cell, Cell];

/** One row per thing that can happen, one cell per state in the order of {@link SESSION_STATES} (hcp.md 4.3). */
const REACTIONS = {
  duplicateSubmit: ['nothing', 'resend', 'resend', 'resend', 'resend', 'resend', 'resend', 'resend'],
  approved: ['approve', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse'],
  rejected: ['reject', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse'],
  gateFailed: ['reject', 'note', 'note', 'note', 'note', 'note', 'note', 'note'],
  pause: ['refuse', 'pause', 'nothing', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse'],
  resume: ['refuse', 'nothing', 'resume', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse'],
  abort: ['note', 'abort', 'abort', 'nothing', 'note', 'note', 'note', 'note'],
  forgedAbort: ['audit', 'audit', 'audit', 'audit', 'audit', 'audit', 'audit', 'audit'],
  succeeded: ['never', 'complete', 'resume+complete', 'nothing', 'never', 'refuse', 'refuse', 'refuse'],
  outputsInvalid: ['never', 'fail', 'resume+fail', 'nothing', 'never', 'refuse', 'refuse', 'refuse'],
  failed: ['never', 'fail', 'resume+fail', 'note', 'never', 'refuse', 'refuse', 'refuse'],
  violated: ['never', 'fail', 'resume+fail', 'emit', 'never', 'note', 'note', 'note'],
  expired: ['never', 'fail', 'resume+fail', 'nothing', 'never', 'nothing', 'nothing', 'nothing'],
  idle: ['nothing', 'fail', 'resume+fail', 'nothing', 'never', 'nothing', 'nothing', 'nothing'],
  cleanedUp: ['never', 'refuse', 'refuse', 'finish', 'never', 'refuse', 'refuse', 'refuse'],
  cleanupTimedOut: ['never', 'nothing', 'nothing', 'finish', 'never', 'nothing', 'nothing', 'nothing'],
  checkpoint: ['refuse', 'emit', 'emit', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse'],
  emit: ['refuse', 'emit', 'emit', 'emit', 'refuse', 'refuse', 'refuse', 'refuse'],
  restartResumable: ['judge', 'pause+resume', 'stay', 'clean', 'flush', 'flush', 'flush', 'flush'],
  restart: ['judge', 'fail', 'resume+fail', 'clean', 'flush', 'flush', 'flush', 'flush'],
  brokerChanged: ['nothing', 'nothing', 'nothing', 'nothing', 'nothing', 'nothing', 'nothing', 'nothing'],
} as const satisfies Record<string, Row>;

export type Trigger = keyof typeof REACTIONS;
export const TRIGGERS = Object.keys(REACTIONS) as readonly Trigger[];

export type Reaction = { readonly moves: readonly Move[] } | Exclude<Cell, Move | `${string}+${string}`>;

const MOVES: ReadonlySet<string> = new Set<Move>([
  'approve',
  'reject',
  'pause',
  'resume',
  'abort',
  'complete',
  'fail',
  'finish',
]);

/** Whether this is one of the nine. The other side may say anything. */
export function isTransition(from: unknown, to: unknown): boolean {
  const state = SESSION_STATES.find((known) => known === from);
  if (state === undefined) return false;
  const snapshot = lifecycle.resolveState({ value: state });
  // MOVES holds moves only.
  const moves = ([...MOVES] as Move[]).filter((move) => snapshot.can({ type: move }));
  return moves.some((move) => advance(state, move) === to);
}

/** What to do about `trigger` in `state`. */
export function react(state: SessionState, trigger: Trigger): Reaction {
  const cell: Cell = REACTIONS[trigger][SESSION_STATES.indexOf(state)] ?? 'never';
  const words = cell.split('+');
  // Every cell is either made of moves or one of the other words.
  if (words.every((word) => MOVES.has(word))) return { moves: words as Move[] };
  return cell as Exclude<Reaction, object>;
}

/** The moves `trigger` calls for. Throws `session_closed` or `session_illegal_transition` when the program may not ask for it. */
export function movesFor(state: SessionState, trigger: Trigger): readonly Move[] {
  const reaction = react(state, trigger);
  if (typeof reaction === 'object') return reaction.moves;
  if (reaction === 'refuse' || reaction === 'never') throw refusal(state, trigger);
  return [];
}

/** Throws unless the program may say something now. */
export function refuseUnless(state: SessionState, trigger: 'emit' | 'checkpoint'): void {
  if (react(state, trigger) !== 'emit') throw refusal(state, trigger);
}

function refusal(state: SessionState, trigger: Trigger): HcpError {
  if (isTerminal(state)) {
    return new HcpError('session_closed', `The session is over (${state}): ${trigger} comes too late`);
  }
  return new HcpError('session_illegal_transition', `${trigger} does not fit a session in state ${state}`);
}
