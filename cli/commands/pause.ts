import { parseDuration } from '../../shared/durations.ts';
import { durationOf } from '../arguments.ts';
import type { Command } from '../command.ts';
import { steer } from '../steer.ts';

/** Suspends the work on a task. */
export const pauseCommand: Command = {
  name: 'pause',
  summary: 'suspend a task of this caller, and wait until it is suspended',
  arguments: '<session>',
  arity: [1, 1],
  options: {
    immediate: { type: 'boolean', about: 'now, not at the next safe point of the work' },
    drain: { type: 'string', value: 'PT30S', about: 'how long the work may take to get to a safe point' },
  },
  examples: ['hcp pause 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b'],
  async run(call) {
    const { values, io } = call;
    const drainTimeoutMs = parseDuration(durationOf(values, 'drain') ?? '');
    const mode = values.immediate === true ? 'immediate' : 'drain';
    const options = { mode, ...(drainTimeoutMs !== undefined && { drainTimeoutMs }), signal: io.signal } as const;
    return steer(call, 'paused', (session) => session.pause(options));
  },
};
