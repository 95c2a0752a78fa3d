import type { CalleeMessage } from '../../caller/index.ts';
import { isTerminal, type SessionState } from '../../session/lifecycle.ts';
import { type LogEntry, readLog } from '../../session/log.ts';
import { delay, systemClock } from '../../shared/clock.ts';
import { HcpError } from '../../shared/errors.ts';
import type { Store } from '../../shared/store/store.ts';
import { sessionOf } from '../arguments.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { jsonLine, paint, paintedMessage } from '../output.ts';

const POLL_MS = 200;

const EXITS: Readonly<Partial<Record<SessionState, ExitCode>>> = { COMPLETED: EXIT.ok, REJECTED: EXIT.refused };

/** Shows everything a session has said and says, to its end. Reads the callee's log, so it disturbs nobody. */
export const tailCommand: Command = {
  name: 'tail',
  summary: "follow a session from its beginning to its end, in the callee's store",
  arguments: '<session>',
  arity: [1, 1],
  examples: ['hcp tail 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b', 'hcp tail 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b --json'],
  async run(call) {
    const sessionId = sessionOf(call);
    const store = await call.workplace.store();
    for (let position = 1; ; ) {
      // Before the log: when it had ended by then, the log that follows is whole.
      const state = await stateOf(store, sessionId);
      for await (const entry of readLog(store, sessionId, position)) {
        tell(call, entry);
        position = entry.position + 1;
      }
      if (isTerminal(state)) return EXITS[state] ?? EXIT.failed;
      await delay(systemClock, POLL_MS, call.io.signal);
    }
  },
};

async function stateOf(store: Store, sessionId: string): Promise<SessionState> {
  const row = await store.get('sessions', [sessionId]);
  if (row === undefined) throw new HcpError('session_unknown', `There is no session ${sessionId} in this store`);
  return row.state as SessionState; // written by the callee alone
}

function tell({ io, json }: Call, { body, kind, position }: LogEntry): void {
  if (body === undefined) {
    // Nothing was said: another process of the callee went on from here.
    io.out(json ? jsonLine({ position, kind }) : paint(io, 'gray', `${kind}: another process goes on`));
  } else {
    const message = JSON.parse(body.toString()) as CalleeMessage; // built by the callee, whose log it is
    io.out(json ? jsonLine(message) : paintedMessage(io, message));
  }
}
