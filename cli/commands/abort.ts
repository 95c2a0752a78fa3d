import { once } from 'node:events';
import { textOf } from '../arguments.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { openSession, patiently } from '../open-caller.ts';
import { complain, jsonLine } from '../output.ts';

/** Stops a task. */
export const abortCommand: Command = {
  name: 'abort',
  summary: 'stop a task of this caller, and wait until it has ended',
  arguments: '<session>',
  arity: [1, 1],
  options: { reason: { type: 'string', value: 'TEXT', about: "for the callee's log" } },
  examples: ['hcp abort 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b --reason "wrong sample"'],
  async run(call) {
    const { io, json } = call;
    const session = await openSession(call);
    const aborting = session.abort(textOf(call.values, 'reason'));
    const stopped = once(io.signal, 'abort').then(() => 'stopped' as const);
    const outcome = await patiently(call, Promise.race([aborting, stopped]));
    if (outcome === 'stopped') {
      aborting.catch(() => {}); // it is asked for; only the waiting ends
      return EXIT.interrupted;
    }
    if (outcome.status !== 'aborted') {
      complain(call, 'session_closed', `The session has ended before: ${outcome.status}`);
      return EXIT.refused;
    }
    io.out(json ? jsonLine({ session_id: session.sessionId, outcome }) : 'aborted');
    return EXIT.ok;
  },
};
