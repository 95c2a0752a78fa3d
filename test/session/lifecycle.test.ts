import { describe, expect, it } from 'vitest';
import {
  advance,
  isTerminal,
  type Move,
  movesFor,
  type Reaction,
  react,
  refuseUnless,
  SESSION_STATES,
  type SessionState,
  TRIGGERS,
  type Trigger,
} from '../../session/lifecycle.ts';
import { isHcpError } from '../../shared/errors.ts';
import { verifies } from '../support/verifies.ts';

const STATES = ['PENDING', 'RUNNING', 'PAUSED', 'ABORTING', 'REJECTED', 'COMPLETED', 'FAILED', 'ABORTED'] as const;

/** The matrix of hcp.md 4.3 in its own words, a column per state in the order above. */
const MATRIX: Record<Trigger, { readonly words: string; readonly cells: string }> = {
  duplicateSubmit: {
    words: 'duplicate task_submit',
    cells:
      'nop | resend accept | resend accept | resend accept | resend reject | resend accept | resend accept | resend accept',
  },
  approved: { words: 'L3 approve', cells: '→RUNNING | err | err | err | err | err | err | err' },
  rejected: { words: 'L3 reject', cells: '→REJECTED | err | err | err | err | err | err | err' },
  gateFailed: {
    words: 'L3 error / approval time-out',
    cells: '→REJECTED | log | log | log | log | log | log | log',
  },
  pause: { words: 'callee pause', cells: 'err | →PAUSED | nop | err | err | err | err | err' },
  resume: { words: 'callee resume', cells: 'err | nop | →RUNNING | err | err | err | err | err' },
  abort: {
    words: 'abort, authorised',
    cells: 'log (X: →REJECTED withdrawn) | →ABORTING | →ABORTING | nop | log | log | log | log',
  },
  forgedAbort: {
    words: 'abort, wrong token or caller',
    cells: 'log+audit | log+audit | log+audit | log+audit | log+audit | log+audit | log+audit | log+audit',
  },
  succeeded: {
    words: 'work succeeded',
    cells: '– | →COMPLETED | via →COMPLETED | nop (discard) | – | err | err | err',
  },
  outputsInvalid: { words: 'outputs invalid', cells: '– | →FAILED | via →FAILED | nop | – | err | err | err' },
  failed: { words: 'work failed', cells: '– | →FAILED | via →FAILED | nop + log | – | err | err | err' },
  violated: {
    words: 'hard safety violation',
    cells: '– | →FAILED safety_violation | via →FAILED | emit error, cleanup goes on | – | log | log | log',
  },
  expired: {
    words: 'max duration / token expiry',
    cells: '– | →FAILED timeout | via →FAILED | nop (timer off) | – | nop | nop | nop',
  },
  idle: { words: 'idle time-out (if on)', cells: 'nop | →FAILED | via →FAILED | nop | – | nop | nop | nop' },
  cleanedUp: { words: 'cleanup done / failed', cells: '– | err | err | →ABORTED | – | err | err | err' },
  cleanupTimedOut: {
    words: 'abort time-out',
    cells: '– | nop | nop | emit warning, →ABORTED | – | nop | nop | nop',
  },
  checkpoint: { words: 'checkpoint', cells: 'err | emit | emit | err | err | err | err | err' },
  emit: {
    words: 'emit progress, result, log, warning, error',
    cells: 'err | emit | emit | emit | err | err | err | err',
  },
  restartResumable: {
    words: 'callee restart, resumable checkpoint',
    cells:
      're-run L3 | →PAUSED →RUNNING | stay; #4 on resume with recovered_from_checkpoint | re-run cleanup, new timer | flush outbox | flush outbox | flush outbox | flush outbox',
  },
  restart: {
    words: 'callee restart, none resumable',
    cells:
      're-run L3 | →FAILED internal_error | via →FAILED internal_error | re-run cleanup | flush outbox | flush outbox | flush outbox | flush outbox',
  },
  brokerChanged: {
    words: 'broker lost / back',
    cells: 'no change; outbox drains in order | same | same | same | same | same | same | same',
  },
};

/** What a cell's first words mean, the longest first. `(X: …)` is an extension that is not in force. */
const MEANINGS: readonly (readonly [string, Exclude<Reaction, object>])[] = [
  ['nop + log', 'note'],
  ['nop', 'nothing'],
  ['log+audit', 'audit'],
  ['log', 'note'],
  ['err', 'refuse'],
  ['emit', 'emit'],
  ['resend', 'resend'],
  ['re-run L3', 'judge'],
  ['re-run cleanup', 'clean'],
  ['flush outbox', 'flush'],
  ['stay', 'stay'],
  ['no change', 'nothing'],
  ['same', 'nothing'],
  ['–', 'never'],
];

/** The states a cell leads through: `→FAILED timeout` is one, a `via` two. */
function pathOf(cell: string): string[] {
  const targets = [...cell.replace(/\(.*\)/, '').matchAll(/→([A-Z]+)/g)].map(([, state]) => String(state));
  return cell.startsWith('via') ? ['RUNNING', ...targets] : targets;
}

function walk(from: SessionState, moves: readonly Move[]): SessionState[] {
  let state = from;
  return moves.map((move) => {
    state = advance(state, move);
    return state;
  });
}

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return isHcpError(error) ? error.code : error;
  }
  return undefined;
}

describe('what happens to a session (hcp.md 4.3)', () => {
  it('has a row for each of the 21 triggers and a column for each of the 8 states', () => {
    expect(SESSION_STATES).toEqual(STATES);
    expect(Object.keys(MATRIX)).toEqual(TRIGGERS);
    expect(TRIGGERS).toHaveLength(21);
  });

  for (const [name, { words, cells }] of Object.entries(MATRIX)) {
    const trigger = name as Trigger; // a key of the table
    const row = cells.split(' | ');
    if (row.length !== STATES.length) throw new Error(`The row ${name} has ${row.length} cells`);
    for (const [column, state] of STATES.entries()) {
      const cell = String(row[column]);
      verifies('HCP-109', `${words} in ${state}: ${cell}`, () => {
        const path = pathOf(cell);
        const reaction = react(state, trigger);
        if (path.length > 0) {
          const { moves } = reaction as { moves: readonly Move[] };
          expect(walk(state, moves)).toEqual(path);
          expect(movesFor(state, trigger)).toEqual(moves);
          return;
        }
        expect(reaction).toBe(MEANINGS.find(([start]) => cell.startsWith(start))?.[1]);
        const isOver = STATES.indexOf(state) >= STATES.indexOf('REJECTED');
        const code = isOver ? 'session_closed' : 'session_illegal_transition';
        const isLoud = cell === 'err' || cell === '–';
        expect(thrownBy(() => movesFor(state, trigger))).toBe(isLoud ? code : undefined);
        if (!isLoud) expect(movesFor(state, trigger)).toEqual([]);
        if (trigger === 'emit' || trigger === 'checkpoint') {
          expect(thrownBy(() => refuseUnless(state, trigger))).toBe(cell === 'emit' ? undefined : code);
        }
      });
    }
  }
});

describe('the nine transitions (hcp.md 4.2)', () => {
  const MOVES: readonly Move[] = ['approve', 'reject', 'pause', 'resume', 'abort', 'complete', 'fail', 'finish'];
  const NINE = [
    'PENDING → RUNNING',
    'PENDING → REJECTED',
    'RUNNING → PAUSED',
    'PAUSED → RUNNING',
    'RUNNING → ABORTING',
    'PAUSED → ABORTING',
    'RUNNING → COMPLETED',
    'RUNNING → FAILED',
    'ABORTING → ABORTED',
  ];

  for (const from of STATES) {
    for (const to of STATES) {
      const isValid = NINE.includes(`${from} → ${to}`);
      verifies('HCP-109', `${from} → ${to} ${isValid ? 'exists, once' : 'does not exist'}`, () => {
        const arrivals = MOVES.filter(
          (move) => thrownBy(() => advance(from, move)) === undefined && advance(from, move) === to,
        );
        expect(arrivals).toHaveLength(isValid ? 1 : 0);
      });
    }
  }

  verifies('HCP-109', 'every other move is refused loudly and by code', () => {
    const refused = STATES.flatMap((from) => MOVES.map((move) => thrownBy(() => advance(from, move)))).filter(
      (code) => code !== undefined,
    );
    expect(refused).toHaveLength(STATES.length * MOVES.length - NINE.length);
    expect(new Set(refused)).toEqual(new Set(['session_illegal_transition']));
  });

  it('ends in four states', () => {
    expect(STATES.filter(isTerminal)).toEqual(['REJECTED', 'COMPLETED', 'FAILED', 'ABORTED']);
  });

  it('names the state and what was tried', () => {
    expect(() => advance('COMPLETED', 'pause')).toThrow('Cannot pause a session in state COMPLETED');
    expect(() => movesFor('FAILED', 'resume')).toThrow('The session is over (FAILED): resume comes too late');
  });
});
