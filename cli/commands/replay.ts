import { canReplay, followOf } from '../../caller/follow.ts';
import { HcpError } from '../../shared/errors.ts';
import { countOf, sessionOf } from '../arguments.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { complain, jsonLine, paintedMessage } from '../output.ts';
import { replayedEvents } from '../replayed-events.ts';
import { UsageError } from '../usage-error.ts';

/** Has the callee publish events of a session again. */
export const replayCommand: Command = {
  name: 'replay',
  summary: 'have the callee send the events of a session of this caller again, and print them',
  arguments: '<session>',
  arity: [1, 1],
  options: {
    from: { type: 'string', value: 'N', about: 'the first event (1)' },
    to: { type: 'string', value: 'N', about: 'the last event (the last there is)' },
  },
  examples: ['hcp replay 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b --from 3 --to 7'],
  async run(call) {
    const { io, json, values, workplace } = call;
    const sessionId = sessionOf(call);
    const from = countOf(values, 'from') ?? 1;
    const to = countOf(values, 'to') ?? Number.POSITIVE_INFINITY;
    if (from > to) throw new UsageError('--from must not be above --to');
    // One after the other: when one cannot be opened, the other is not left half open.
    const transport = await workplace.transport();
    const store = await workplace.store();
    const row = await store.get('follows', [workplace.callerId, sessionId]);
    if (row === undefined) {
      throw new HcpError('session_unknown', `The caller ${workplace.callerId} has no session ${sessionId}`);
    }
    const follow = followOf(row);
    if (!canReplay(follow)) {
      complain(call, 'refused', 'replay/1 is not in force: this callee does not send events again');
      return EXIT.refused;
    }
    const events = await replayedEvents({ transport, follow, from, to, signal: io.signal });
    if (events.length === 0) {
      complain(call, 'not_found', 'The callee has none of these events');
      return EXIT.notFound;
    }
    for (const event of events) io.out(json ? jsonLine(event) : paintedMessage(io, event));
    return EXIT.ok;
  },
};
