import type { Caller, PendingApproval, Session, Task } from '../../caller/index.ts';
import type { EventMessage } from '../../schemas/types.ts';
import { isHcpError } from '../../shared/errors.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { openCaller, patiently } from '../open-caller.ts';
import { tellOutcome } from '../outcome.ts';
import { jsonLine, paint, paintedMessage, progressBar } from '../output.ts';
import { readTask, TASK_OPTIONS } from '../task.ts';
import { UsageError } from '../usage-error.ts';

const BAR_WIDTH = 20;

/** Has a callee do a task, and follows it. */
export const submitCommand: Command = {
  name: 'submit',
  summary: 'have a callee do a task, and follow it to its end',
  arguments: '<capability>',
  arity: [1, 1],
  options: {
    ...TASK_OPTIONS,
    detach: { type: 'boolean', about: 'print the session id and leave; hcp tail follows it' },
  },
  examples: [
    `hcp submit demo.count --input '{"to":5}'`,
    'hcp submit lab.measure --input @task.json --max-duration PT10M --callee-id lab',
    'echo \'{"to":5}\' | hcp submit demo.count --input - --json',
  ],
  async run(call) {
    const task = await readTask(call);
    const pending = Promise.withResolvers<PendingApproval>();
    const caller = await openCaller(call, {
      onApprovalPending: (told) => {
        tellPending(call, told);
        pending.resolve(told);
      },
    });
    try {
      return await send(call, caller, task, pending.promise);
    } catch (error) {
      // What was typed is not a task at all.
      throw isHcpError(error, 'message_invalid') ? new UsageError(error.message) : error;
    }
  },
};

async function send(call: Call, caller: Caller, task: Task, pending: Promise<PendingApproval>): Promise<ExitCode> {
  const { io, json, workplace, values } = call;
  const isDetached = values.detach === true;
  const submitting = caller.submit(task, { calleeId: workplace.calleeId, signal: io.signal });
  // Whether there will be a session can take a human days.
  const answer = await patiently(call, Promise.race([submitting, pending]));
  if (isDetached && answer.sessionId !== undefined) {
    submitting.catch(() => {}); // it stays open in the store, for the next command
    io.out(json ? jsonLine({ session_id: answer.sessionId }) : answer.sessionId);
    return EXIT.ok;
  }
  const session = await submitting;
  if (session.sessionId === undefined) return tellOutcome(call, await session.result(), task);
  if (json) io.out(jsonLine({ session_id: session.sessionId }));
  else io.out(`session ${paint(io, 'cyan', session.sessionId)}`);
  return follow(call, session, task);
}

/** To its end. The first Ctrl-C aborts the task and waits for that; the second one ends the process, as it would anyway. */
async function follow(call: Call, session: Session, task: Task): Promise<ExitCode> {
  const { io } = call;
  const lost = new AbortController();
  const abort = () => {
    io.err('hcp: aborting; Ctrl-C again leaves at once');
    session.abort('Interrupted by the user').catch((error: unknown) => lost.abort(error));
  };
  io.signal.addEventListener('abort', abort, { once: true });
  if (io.signal.aborted) abort();
  for await (const event of session.events({ signal: lost.signal })) tellEvent(call, event);
  const exit = tellOutcome(call, await session.result(), task);
  return io.signal.aborted ? EXIT.interrupted : exit;
}

function tellEvent({ io, json }: Call, event: EventMessage): void {
  const { event_type: type, data } = event.payload;
  const hasBar = io.isTTY && type === 'progress' && typeof data.percent === 'number';
  const bar = hasBar ? `${progressBar(Number(data.percent), BAR_WIDTH)}  ` : '';
  io.out(json ? jsonLine(event) : `${bar}${paintedMessage(io, event)}`);
}

function tellPending({ io, json }: Call, { sessionId, expiresAt, riskLevel }: PendingApproval): void {
  const until = new Date(expiresAt).toISOString();
  const approval_pending = { session_id: sessionId, expires_at: until, risk_level: riskLevel };
  const words = `risk ${riskLevel}: a human has to decide until ${until}, with hcp approvals approve ${sessionId}`;
  if (json) io.out(jsonLine({ approval_pending }));
  else io.err(`hcp: ${words}`);
}
