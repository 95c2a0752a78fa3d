import { type ApprovalDesk, openApprovalDesk, type PendingApproval } from '../../callee/index.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { sessionOf, textOf } from '../arguments.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { jsonLine, table, tame } from '../output.ts';
import { approvalJson } from '../session-story.ts';
import { storeToRead } from '../stored.ts';
import { moment } from '../times.ts';
import { UsageError } from '../usage-error.ts';

const list: Command = {
  name: 'approvals list',
  summary: 'the tasks that wait for a human, the oldest first; their inputs with --json',
  examples: ['hcp approvals list', 'hcp approvals list --json'],
  async run({ json, io, workplace }) {
    const store = await storeToRead(workplace);
    const waiting = await openApprovalDesk({ store, calleeId: workplace.calleeId }).list();
    if (json) io.out(jsonLine(waiting.map(waitingJson)));
    else if (waiting.length === 0) io.out('Nothing waits for approval');
    else for (const line of table([HEADINGS, ...waiting.map(cells)])) io.out(line);
    return EXIT.ok;
  },
};

const VOTE_OPTIONS = {
  as: { type: 'string', value: 'NAME', about: 'who decides; goes on record (USER)' },
  comment: { type: 'string', value: 'TEXT', about: 'why' },
} as const;

const approve: Command = {
  name: 'approvals approve',
  summary: 'let a task be done',
  arguments: '<session>',
  arity: [1, 1],
  options: VOTE_OPTIONS,
  examples: ['hcp approvals approve 0b7f6a52-6d0a-4a38-9f6e-3c8f0a5a1f11 --as ada --comment "cooled down"'],
  async run(call) {
    const { sessionId, desk, approver, ...vote } = await openDesk(call);
    const status = await desk.approve(sessionId, { approver, ...vote });
    say(call, { session_id: sessionId, status }, status === 'approved' ? 'Approved' : 'Another person must agree, too');
    return EXIT.ok;
  },
};

const deny: Command = {
  name: 'approvals deny',
  summary: 'have a task rejected',
  arguments: '<session>',
  arity: [1, 1],
  options: VOTE_OPTIONS,
  examples: ['hcp approvals deny 0b7f6a52-6d0a-4a38-9f6e-3c8f0a5a1f11 --as ada --comment "not today"'],
  async run(call) {
    const { sessionId, desk, approver, ...vote } = await openDesk(call);
    await desk.deny(sessionId, { approver, ...vote });
    say(call, { session_id: sessionId, status: 'denied' }, 'Denied');
    return EXIT.ok;
  },
};

export const approvalsCommands: readonly Command[] = [list, approve, deny];

interface Vote {
  readonly sessionId: string;
  readonly desk: ApprovalDesk;
  readonly approver: string;
  readonly comment?: string;
}

async function openDesk(call: Call): Promise<Vote> {
  const { values, io, workplace } = call;
  const sessionId = sessionOf(call);
  const approver = textOf(values, 'as') ?? io.env.USER ?? '';
  if (approver.trim() === '') throw new UsageError('--as must name who decides');
  const comment = textOf(values, 'comment');
  const store = await storeToRead(workplace);
  const transport = await transportIfThere(call);
  return {
    sessionId,
    desk: openApprovalDesk({ store, calleeId: workplace.calleeId, ...(transport && { transport }) }),
    approver,
    ...(comment !== undefined && { comment }),
  };
}

/** It only makes the callee look at once: a decision must not fail because a broker is away. */
async function transportIfThere({ io, workplace, json }: Call): Promise<Transport | undefined> {
  try {
    return await workplace.transport();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (!json) io.err('hcp: The callee cannot be told: it will look by itself within seconds');
    return undefined;
  }
}

function say({ json, io }: Call, fields: object, sentence: string): void {
  io.out(json ? jsonLine(fields) : sentence);
}

function waitingJson(waiting: PendingApproval): object {
  const { sessionId, callerId, task } = waiting;
  return { session_id: sessionId, caller_id: callerId, ...approvalJson(waiting), task };
}

const HEADINGS = ['SESSION', 'CAPABILITY', 'CALLER', 'RISK', 'AGREED', 'UNTIL (UTC)', 'INTENT'];

function cells({ sessionId, callerId, riskLevel, votes, needed, expiresAt, task }: PendingApproval): string[] {
  const agreed = `${votes.length} of ${needed}`;
  return [sessionId, tame(task.capability), callerId, riskLevel, agreed, moment(expiresAt), tame(task.intent)];
}
