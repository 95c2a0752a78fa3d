import type { Executor, Run } from '../../callee/index.ts';
import type { XPausePayload } from '../../schemas/types.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import { untilStopped } from './executors.ts';
import type { World } from './world.ts';

/** A capability that can be paused by its caller, and a task that wants to be. */
export const PAUSABLE = { extensions: ['pause/1'] };
export const PAUSING = { extensions: { 'pause/1': { required: true } } };

interface Sender {
  readonly senderId?: string;
  readonly messageId?: string;
}

export async function askPause(world: World, sessionId: string, payload: XPausePayload = {}, sender: Sender = {}) {
  await ask(world, 'x-pause', sessionId, payload, sender);
}

export async function askResume(
  world: World,
  sessionId: string,
  payload: { session_token?: string } = {},
  sender: Sender = {},
) {
  await ask(world, 'x-resume', sessionId, payload, sender);
}

async function ask(
  world: World,
  type: 'x-pause' | 'x-resume',
  sessionId: string,
  payload: XPausePayload,
  { senderId = world.callerId, messageId }: Sender,
): Promise<void> {
  // A brand, and made just so.
  const built = buildMessage({
    type,
    sessionId,
    senderId,
    payload,
    ...(messageId && { messageId: messageId as never }),
  });
  await world.send(built.body, built.properties);
}

/** A task whose steps are the test's. It works until it is told to finish or to stop. */
export function controlled(): { readonly executor: Executor; readonly run: Promise<Run>; readonly finish: () => void } {
  const started = Promise.withResolvers<Run>();
  const finished = Promise.withResolvers<void>();
  return {
    run: started.promise,
    finish: finished.resolve,
    executor: async (task, run) => {
      started.resolve(run);
      await Promise.race([finished.promise, untilStopped(task, run)]);
      return { outputs: {} };
    },
  };
}

/** Some work that the test watches. */
export function watched(work: Promise<unknown>): { readonly done: Promise<unknown>; readonly isDone: () => boolean } {
  let isDone = false;
  const end = () => {
    isDone = true;
  };
  work.then(end, end);
  return { done: work, isDone: () => isDone };
}
