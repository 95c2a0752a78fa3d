import type { Executor } from '../../callee/index.ts';
import type { Extensions, XReplayPayload } from '../../schemas/types.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import type { Heard, World } from './world.ts';

/** All three, none of them needed. */
export const ALL: Extensions = { 'replay/1': { required: false }, 'status/1': { required: false }, 'stream/1': {} };

/** Asks for events again. */
export async function askReplay(
  world: World,
  sessionId: string,
  [from_sequence, to_sequence]: readonly [number, number],
  { token, senderId = world.callerId }: { token?: string; senderId?: string } = {},
): Promise<void> {
  const payload: XReplayPayload = { from_sequence, to_sequence, ...(token && { session_token: token }) };
  const built = buildMessage({ type: 'x-replay', sessionId, senderId, payload });
  await world.send(built.body, built.properties);
}

/** Asks how a session is. */
export async function askStatus(
  world: World,
  sessionId: string,
  { token, senderId = world.callerId }: { token?: string; senderId?: string } = {},
): Promise<void> {
  const built = buildMessage({ type: 'x-status', sessionId, senderId, payload: token ? { session_token: token } : {} });
  await world.send(built.body, built.properties);
}

/** A task that says so much, and goes on until it is told to finish. */
export function talkative(count: number): { readonly executor: Executor; readonly finish: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    finish: resolve,
    executor: async (_, run) => {
      const said = Array.from({ length: count }, (_unused, i) =>
        run.progress({ stage: 'talk', message: `Nr. ${i} é` }),
      );
      await Promise.all(said);
      await promise;
      return { outputs: {} };
    },
  };
}

/** What was received, byte for byte, by place. */
export function bodies(world: World, from: number, to?: number): string[] {
  return world.received.slice(from, to).map(({ body }) => Buffer.from(body).toString());
}

/** The data of an event of an extension, with its sequence. */
export function dataOf(message: Heard | undefined): object {
  if (message?.type !== 'event') throw new Error(`Not an event, but ${message?.type}`);
  const { event_type: event, sequence, data } = message.payload;
  return { event, sequence, ...data };
}
