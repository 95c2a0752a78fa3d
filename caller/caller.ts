import type { EventMessage, TaskCompleted, TaskSubmit } from '../schemas/types.ts';
import { expectationFault } from '../session/expected-output.ts';
import type { SessionState } from '../session/lifecycle.ts';
import { parseDuration } from '../shared/durations.ts';
import { HcpError } from '../shared/errors.ts';
import { createSchemaSandbox, type SchemaSandbox } from '../shared/foreign-schema/sandbox.ts';
import { Periodic } from '../shared/periodic.ts';
import { commandRoute, type QueueDeclaration } from '../shared/transport/topology.ts';
import type { Consumer } from '../shared/transport/transport.ts';
import { type PauseOptions, SessionCommands } from './commands.ts';
import { type EventChannel, openEventChannel, type ReceivedEvent, type Verdict } from './event-channel.ts';
import type { FollowedSession, SessionStatus } from './followed-session.ts';
import { Follower } from './follower.ts';
import { purgeCaller, reportStorage, type StorageReport } from './housekeeping.ts';
import { type CallerOptions, type CallerSettings, resolveCallerOptions } from './options.ts';
import { type Outcome, rejection } from './outcome.ts';
import { listParked, type ParkedEvent, retryParked } from './parked-events.ts';
import { leaveFormerQueues } from './partitions.ts';
import { CallerSubmissions, type Task } from './submissions.ts';
import { CallerTelemetry } from './telemetry.ts';

/** A task that was submitted. */
export interface Session {
  /** `undefined` when the task was rejected: there is no session then. */
  readonly sessionId: string | undefined;
  readonly state: SessionState;
  /** How it ends. Rejects with `result_missing`, `session_stalled` or `caller_closed`. */
  result(): Promise<Outcome>;
  /** The events in order, at least once each; asking for the next one acknowledges the last. Without `onEvent` only. */
  events(options?: { readonly signal?: AbortSignal }): AsyncIterable<EventMessage>;
  /** Asks the callee where the session is. Rejects with a `TypeError` where `status/1` is not in force, or the signal's reason. */
  status(options?: { readonly signal?: AbortSignal }): Promise<SessionStatus>;
  /**
   * Asks the callee to suspend the work. Resolves when it says that it has. Rejects with a `TypeError` where `pause/1` is
   * not in force, `session_closed` when the session ends instead, `callee_unreachable`, or the signal's reason.
   */
  pause(options?: PauseOptions): Promise<void>;
  /** Asks the callee to go on with the work; otherwise as `pause`. */
  resume(reason?: string, options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Stops the task. Resolves when the session has ended; rejects with `abort_timeout` when it should have by now. */
  abort(reason?: string): Promise<Outcome>;
}

/** What an orchestrator embeds. */
export interface Caller extends AsyncDisposable {
  /** Listens for what callees say, and takes up what was left open. Called by the first `submit`, too. */
  start(): Promise<void>;
  /**
   * Resolves when the callee has answered. Rejects with `callee_unreachable`, `submit_timeout`, or the signal's reason;
   * a task about which a human decides is withdrawn then.
   */
  submit(task: Task, options: { readonly calleeId: string; readonly signal?: AbortSignal }): Promise<Session>;
  /** A session of an earlier life of this caller. */
  session(sessionId: string): Promise<Session | undefined>;
  /** The oldest events that a handler could not process. */
  parked(options?: { readonly limit?: number }): Promise<readonly ParkedEvent[]>;
  /** Gives a parked event to the handler again, exactly once if it succeeds. Rejects with what the handler throws. */
  retryParked(event: Pick<ParkedEvent, 'sessionId' | 'sequence'>): Promise<void>;
  /** How much of this caller is in the store. */
  storage(): Promise<StorageReport>;
  /** Finishes the handlers that run and lets go. Idempotent. The transport and the store stay open. */
  close(): Promise<void>;
}

/** Makes a caller. Does no I/O; throws `TypeError`, one sentence, for options that cannot work. */
export function createCaller(options: CallerOptions): Caller {
  return new CallerProcess(resolveCallerOptions(options));
}

const HOUR_MS = 3_600_000;
const REFRESH_MS = 1000;

class CallerProcess implements Caller {
  readonly #settings: CallerSettings;
  readonly #channel: EventChannel;
  readonly #commands: SessionCommands;
  readonly #sandbox: SchemaSandbox = createSchemaSandbox();
  readonly #telemetry: CallerTelemetry = new CallerTelemetry(() => this.#follower.lag);
  readonly #follower: Follower;
  readonly #submissions: CallerSubmissions;
  readonly #consumers: Consumer[] = [];
  readonly #closing = new AbortController();
  #moving: Promise<void> | undefined;
  readonly #periodic: Periodic;
  #started: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(settings: CallerSettings) {
    const { callerId, transport, queue, prefetch, limits, logger, listeners } = settings;
    this.#settings = settings;
    this.#periodic = new Periodic(settings.clock, settings.logger);
    this.#channel = openEventChannel({
      ...{ callerId, transport, queue, prefetch, limits, logger },
      onInvalid: async (fault, salvage) => {
        const { sessionId, sequence, type } = salvage;
        // Of another major version nothing can be told, not even that it is what it looks like.
        const isEvent = type === 'event' && fault.code !== 'unsupported_version';
        if (isEvent && sessionId !== undefined && sequence !== undefined)
          await this.#follower.skip(sessionId, sequence);
        listeners.onInvalid?.(fault, salvage);
      },
    });
    this.#commands = new SessionCommands(settings, this.#channel);
    this.#follower = new Follower({
      settings,
      telemetry: this.#telemetry,
      askReplay: (follow, range) => this.#commands.replay(follow, range),
    });
    this.#submissions = new CallerSubmissions({
      ...{ settings, channel: this.#channel, follower: this.#follower },
      abort: (target, reason) => this.#commands.abort(target, reason),
    });
  }

  start(): Promise<void> {
    if (this.#closed) return Promise.reject(new HcpError('caller_closed', 'The caller is closed'));
    this.#started ??= this.#start().catch((error: unknown) => {
      this.#started = undefined; // it may be tried again
      throw error;
    });
    return this.#started;
  }

  async submit(
    task: Task,
    { calleeId, signal }: { readonly calleeId: string; readonly signal?: AbortSignal },
  ): Promise<Session> {
    commandRoute(calleeId); // throws for an id that is none
    await this.start();
    const answer = await this.#telemetry.submitting(calleeId, () => this.#submissions.submit(task, calleeId, signal));
    return 'accepted' in answer ? this.#handle(answer.accepted) : rejectedSession(rejection(answer.rejected));
  }

  async session(sessionId: string): Promise<Session | undefined> {
    await this.start();
    const found = await this.#follower.find(sessionId);
    return found && this.#handle(found);
  }

  parked({ limit = 100 }: { readonly limit?: number } = {}): Promise<readonly ParkedEvent[]> {
    return listParked(this.#settings.store, this.#settings.callerId, limit);
  }

  async retryParked({ sessionId, sequence }: Pick<ParkedEvent, 'sessionId' | 'sequence'>): Promise<void> {
    const { store, callerId, onEvent } = this.#settings;
    if (onEvent === undefined) throw new TypeError('retryParked() needs onEvent');
    await retryParked(store, onEvent, [callerId, sessionId, sequence]);
  }

  storage(): Promise<StorageReport> {
    return reportStorage(this.#settings.store, this.#settings.callerId);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Listens before the first submit (HCP-201); what was open is taken up before that. */
  async #start(): Promise<void> {
    await this.#follower.resume();
    await this.#submissions.resume();
    for (const queue of this.#settings.queues) {
      this.#consumers.push(await this.#channel.consume((received) => this.#receive(received), queue));
    }
    this.#moving = this.#leaveFormerQueues();
    this.#periodic.every(HOUR_MS, () => this.#purge());
    this.#periodic.every(REFRESH_MS, () => this.#refresh());
  }

  async #close(): Promise<void> {
    this.#closing.abort(new HcpError('caller_closed', 'The caller is closed'));
    await this.#started?.catch(() => {});
    this.#periodic.stop();
    await this.#follower.close();
    this.#submissions.close();
    await this.#moving;
    await Promise.all(this.#consumers.map((consumer) => consumer.close()));
    await this.#sandbox.close();
  }

  #leaveFormerQueues(): Promise<void> {
    const { callerId, transport, clock, logger, partitions, queue } = this.#settings;
    const consume = (former: QueueDeclaration, heard: () => void) =>
      this.#channel.consume((received) => {
        heard();
        return this.#receive(received);
      }, former);
    const parts = { transport, clock, logger, signal: this.#closing.signal, consume };
    return leaveFormerQueues(parts, callerId, partitions, queue);
  }

  #receive(received: ReceivedEvent): Promise<Verdict> {
    const { message } = received;
    switch (message.type) {
      case 'event':
        return message.payload.event_type === 'x-approval-pending'
          ? this.#submissions.receivePending({ ...received, message })
          : this.#follower.receive({ ...received, message });
      case 'task_failed':
        return this.#follower.receiveResult(message);
      case 'task_completed':
        return this.#follower.receiveResult(message).then(() => this.#checkOutputs(message));
      case 'task_accepted':
      case 'task_rejected':
        return this.#submissions.receiveAnswer({ ...received, message });
    }
  }

  #handle(session: FollowedSession): Session {
    const follower = this.#follower;
    return {
      sessionId: session.follow.sessionId,
      get state() {
        return session.told.state;
      },
      result: () => session.result,
      events: ({ signal } = {}) => follower.read(session, signal),
      status: ({ signal } = {}) => this.#commands.status(session, signal),
      pause: (options = {}) => this.#commands.pause(session, options),
      resume: (reason, { signal } = {}) => this.#commands.resume(session, reason, signal),
      abort: (reason) => this.#abort(session, reason),
    };
  }

  async #abort(session: FollowedSession, reason: string | undefined): Promise<Outcome> {
    if (session.hasSettled) return session.result;
    const { accepted, sessionId } = session.follow;
    await this.#commands.abort(session.follow, reason);
    const abortTimeoutMs = parseDuration(accepted.payload.constraints?.abort_timeout ?? '') ?? 300_000;
    const late = session.overdue(abortTimeoutMs + this.#settings.graceMs, () => {
      const error = new HcpError('abort_timeout', `Session ${sessionId} was not aborted in time; it is still followed`);
      this.#follower.tell('onTrouble', error, sessionId);
      return error;
    });
    return Promise.race([session.ending, late]);
  }

  /** Outputs that are not what was asked for are reported; the task is over all the same (HCP-227). */
  async #checkOutputs({ session_id: sessionId, message_id, payload }: TaskCompleted): Promise<void> {
    const { store, callerId, logger } = this.#settings;
    const session = await this.#follower.find(sessionId);
    const row = session && (await store.get('submissions', [callerId, session.follow.messageId]));
    if (row === undefined) return;
    const { expected_output: expected } = (JSON.parse(String(row.request)) as TaskSubmit).payload; // we built it
    const fault = expected && (await expectationFault(this.#sandbox, expected, payload.outputs));
    if (fault === undefined) return;
    logger.warn({ session_id: sessionId, message_id, fault }, 'The outputs are not what was asked for');
    this.#follower.tell('onTrouble', new HcpError('outputs_unexpected', fault), sessionId);
  }

  async #purge(): Promise<void> {
    const { store, callerId, clock, retentionMs, logger } = this.#settings;
    const purged = await purgeCaller(store, callerId, clock.now() - retentionMs);
    if (purged > 0) logger.info({ purged }, 'Forgot sessions and submits past their retention');
  }

  /** Other processes of this caller may have got what is waited for here. */
  async #refresh(): Promise<void> {
    await this.#submissions.refresh();
    await this.#follower.refresh();
  }
}

function rejectedSession(outcome: Outcome): Session {
  const refuse = async () => {
    throw new HcpError('session_closed', 'The task was rejected: there is no session');
  };
  return {
    sessionId: undefined,
    state: 'REJECTED',
    result: async () => outcome,
    events: async function* () {},
    status: async () => ({ state: 'REJECTED', lastSequence: 0, resultSent: true }),
    pause: refuse,
    resume: refuse,
    abort: async () => outcome,
  };
}
