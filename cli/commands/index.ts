import type { Command } from '../command.ts';
import { abortCommand } from './abort.ts';
import { approvalsCommands } from './approvals.ts';
import { calleeRunCommand } from './callee-run.ts';
import { checkpointsCommand } from './checkpoints.ts';
import { completionCommand } from './completion.ts';
import { conformanceCommands } from './conformance.ts';
import { devCommand } from './dev.ts';
import { doctorCommand } from './doctor.ts';
import { exportCommand } from './export.ts';
import { helpCommand } from './help.ts';
import { newCommands } from './new.ts';
import { parkedCommands } from './parked.ts';
import { pauseCommand } from './pause.ts';
import { replayCommand } from './replay.ts';
import { resumeCommand } from './resume.ts';
import { schemasCommands } from './schemas.ts';
import { sessionsCommands } from './sessions.ts';
import { submitCommand } from './submit.ts';
import { tailCommand } from './tail.ts';
import { validateCommand } from './validate.ts';
import { verifyCommand } from './verify.ts';

/** Every verb, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  devCommand,
  submitCommand,
  tailCommand,
  pauseCommand,
  resumeCommand,
  abortCommand,
  replayCommand,
  calleeRunCommand,
  ...sessionsCommands,
  checkpointsCommand,
  ...approvalsCommands,
  ...parkedCommands,
  validateCommand,
  exportCommand,
  verifyCommand,
  ...schemasCommands,
  ...newCommands,
  ...conformanceCommands,
  doctorCommand,
  completionCommand,
  helpCommand,
];
