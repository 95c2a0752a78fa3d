import type { Session } from '../caller/index.ts';
import { isHcpError } from '../shared/errors.ts';
import type { Call } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { openSession, patiently } from './open-caller.ts';
import { complain, jsonLine } from './output.ts';

/** Says something to the callee about a session, and waits until it is so. What the session does not allow is refused. */
export async function steer(call: Call, done: string, act: (session: Session) => Promise<void>): Promise<ExitCode> {
  const { io, json } = call;
  const session = await openSession(call);
  try {
    await patiently(call, act(session));
  } catch (error) {
    // A TypeError says that the extension was not agreed on with the task.
    const code = isHcpError(error) ? error.code : error instanceof TypeError ? 'refused' : undefined;
    if (code !== 'session_closed' && code !== 'refused') throw error;
    complain(call, code, error instanceof Error ? error.message : String(error));
    return EXIT.refused;
  }
  io.out(json ? jsonLine({ session_id: session.sessionId, state: session.state }) : done);
  return EXIT.ok;
}
