import { applyCure, type Outcome, type Task } from '../caller/index.ts';
import type { Call, Values } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { jsonLine, paint, tame } from './output.ts';
import { taskCommand, typedPlace } from './task.ts';

const EXITS = {
  completed: EXIT.ok,
  failed: EXIT.failed,
  aborted: EXIT.failed,
  rejected: EXIT.refused,
} as const satisfies Record<Outcome['status'], ExitCode>;

/** Prints how a task ended, and answers what the command ends with. */
export function tellOutcome(call: Call, outcome: Outcome, task: Task): ExitCode {
  const { io, json, values } = call;
  const corrected = outcome.status === 'rejected' ? correctedCommand(outcome, task, values) : undefined;
  if (json) io.out(jsonLine({ outcome: asSent(outcome, corrected) }));
  else for (const line of lines(io, outcome, corrected)) io.out(line);
  return EXITS[outcome.status];
}

/** In the words of the wire, as everything in JSON. */
function asSent(outcome: Outcome, corrected: string | undefined): object {
  if (outcome.status === 'aborted') return outcome;
  const { status, message } = outcome;
  return { status, ...message.payload, ...(corrected !== undefined && { corrected_command: corrected }) };
}

function lines(io: Call['io'], outcome: Outcome, corrected: string | undefined): string[] {
  switch (outcome.status) {
    case 'completed': {
      const { outputs, artifacts = [] } = outcome.message.payload;
      return [
        `${paint(io, 'green', 'completed')}: ${tame(outputs)}`,
        ...artifacts.map(({ name, uri }) => `artifact: ${tame(name)}, ${tame(uri)}`),
      ];
    }
    case 'failed': {
      const { errorCode, errorMessage, lastCheckpoint } = outcome;
      return [
        `${paint(io, 'red', 'failed')}: ${tame(`${errorCode}, ${errorMessage}`)}`,
        ...(lastCheckpoint === undefined ? [] : [`last checkpoint: ${tame(lastCheckpoint)}`]),
      ];
    }
    case 'aborted':
      return [paint(io, 'yellow', 'aborted')];
    case 'rejected': {
      const { reasonCode, reasonMessage, suggestion } = outcome;
      return [
        `${paint(io, 'red', 'rejected')}: ${tame(`${reasonCode}, ${reasonMessage}`)}`,
        ...(suggestion === undefined ? [] : [`suggestion: ${tame(suggestion)}`]),
        ...(corrected === undefined ? [] : ['this would be accepted:', `  ${tame(corrected)}`]),
      ];
    }
  }
}

/** The command as the callee would accept it, to be looked at first. */
function correctedCommand(
  { cure }: Extract<Outcome, { status: 'rejected' }>,
  task: Task,
  values: Values,
): string | undefined {
  if (cure === undefined) return undefined;
  try {
    return `${taskCommand(applyCure(task, cure))}${typedPlace(values)}`;
  } catch {
    return undefined; // what does not fit the task cures nothing
  }
}
