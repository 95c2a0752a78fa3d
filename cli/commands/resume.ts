import type { Command } from '../command.ts';
import { steer } from '../steer.ts';

/** Goes on with a task that is paused. */
export const resumeCommand: Command = {
  name: 'resume',
  summary: 'go on with a task that is paused',
  arguments: '<session>',
  arity: [1, 1],
  examples: ['hcp resume 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b'],
  run: (call) => steer(call, 'running', (session) => session.resume(undefined, { signal: call.io.signal })),
};
