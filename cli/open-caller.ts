import { type Caller, type CallerListeners, createCaller, type Session } from '../caller/index.ts';
import { HcpError } from '../shared/errors.ts';
import { sessionOf } from './arguments.ts';
import type { Call } from './command.ts';
import { UsageError } from './usage-error.ts';

/** Sooner than a program would: somebody sits and waits. */
const SUBMIT_TIMEOUT_MS = 10_000;
const SLOW_MS = 5000;

/** The caller this command is; closed with the workplace. */
export async function openCaller({ workplace }: Call, listeners: CallerListeners = {}): Promise<Caller> {
  const { callerId } = workplace;
  // One after the other: when one cannot be opened, the other is not left half open.
  const transport = await workplace.transport();
  const store = await workplace.store();
  try {
    const caller = createCaller({ callerId, transport, store, submitTimeoutMs: SUBMIT_TIMEOUT_MS, ...listeners });
    return workplace.use(caller);
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  }
}

/** The session a command is about. Rejects with `session_unknown` for one this caller does not follow. */
export async function openSession(call: Call): Promise<Session> {
  const sessionId = sessionOf(call);
  const caller = await openCaller(call);
  const session = await caller.session(sessionId);
  if (session) return session;
  throw new HcpError('session_unknown', `The caller ${call.workplace.callerId} has no session ${sessionId}`);
}

/** Waits, and says so when it takes long: a queue accepts messages also while nobody reads it. */
export async function patiently<T>({ io, workplace }: Call, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => io.err(`hcp: no answer from ${workplace.calleeId} yet: is it running?`), SLOW_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
