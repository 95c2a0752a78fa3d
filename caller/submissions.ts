import type { TaskAccepted, TaskRejected, TaskSubmitPayload } from '../schemas/types.ts';
import { HcpError, isHcpError } from '../shared/errors.ts';
import { type BuiltMessage, buildMessage, restoreMessage } from '../shared/messages/build.ts';
import { IN_REPLY_TO_HEADER } from '../shared/messages/message.ts';
import type { Row } from '../shared/store/store.ts';
import type { EventChannel, ReceivedEvent } from './event-channel.ts';
import { type Follow, followOf, rowOfFollow } from './follow.ts';
import type { FollowedSession } from './followed-session.ts';
import type { Follower } from './follower.ts';
import { pages } from './housekeeping.ts';
import type { CallerSettings } from './options.ts';
import { Patience } from './patience.ts';

/** What a program asks a callee for; the caller's own id is filled in. */
export type Task = Omit<TaskSubmitPayload, 'caller_id'>;

/** How a submit was answered. */
export type Answer = { readonly accepted: FollowedSession } | { readonly rejected: TaskRejected };

/** What makes a gap curable and a result complete, asked of every callee and required of none. */
const WANTED = {
  'replay/1': { required: false },
  'stream/1': { required: false },
  'status/1': { required: false },
} as const;

const REMEMBERED_GUESSES = 1000;

interface OpenSubmit {
  readonly messageId: string;
  readonly calleeId: string;
  readonly answer: PromiseWithResolvers<Answer>;
  /** Stops what is still being sent. */
  readonly gaveUp: AbortController;
  tries: number;
  timer: unknown;
}

export interface SubmissionParts {
  readonly settings: CallerSettings;
  readonly channel: EventChannel;
  readonly follower: Follower;
  /** Ends a session nobody asked for. */
  readonly abort: (follow: Follow, reason: string) => Promise<void>;
}

/** Sends submits until they are answered, the same bytes each time, and finds the submit an answer is for. */
export class CallerSubmissions {
  readonly #parts: SubmissionParts;
  readonly #patience: Patience;
  readonly #open = new Map<string, OpenSubmit>();
  /** Rejections that were matched by guess: the same one again must not be taken for the answer to the next submit. */
  readonly #guessed = new Set<string>();
  #closed = false;

  constructor(parts: SubmissionParts) {
    this.#parts = parts;
    this.#patience = new Patience(parts.settings.clock, parts.settings.logger);
  }

  /** Stored before it is sent: a restart can still match the answer (HCP-203). */
  async submit(task: Task, calleeId: string, signal?: AbortSignal): Promise<Answer> {
    const { callerId, store, clock, limits } = this.#parts.settings;
    signal?.throwIfAborted();
    const payload = { ...task, caller_id: callerId, extensions: { ...WANTED, ...task.extensions } };
    const draft = { type: 'task_submit', sessionId: null, senderId: callerId, payload } as const;
    const built = buildMessage(draft, { clock, limits });
    const messageId = built.message.message_id;
    const row = {
      caller_id: callerId,
      message_id: messageId,
      callee_id: calleeId,
      status: 'open',
      submitted_at: clock.now(),
      request: built.body.toString(),
      session_id: null,
      answer: null,
    };
    await store.commit([{ insert: 'submissions', row }]);
    if (this.#closed) throw closedError();
    const open = this.#remember(messageId, calleeId);
    const stop = () => void this.#abandon(open, signal?.reason);
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    // Not awaited: a broker that is away must not keep the program from giving up.
    this.#send(open, built).catch((error: unknown) => this.#abandon(open, error));
    try {
      return await open.answer.promise;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  /** Takes up the submits that have no answer yet. */
  async resume(): Promise<void> {
    const { store, callerId } = this.#parts.settings;
    for await (const rows of pages(store, 'submissions', 'by_status', { where: [callerId, 'open'] })) {
      for (const row of rows) {
        const open = this.#remember(String(row.message_id), String(row.callee_id));
        open.answer.promise.catch(() => {}); // whoever asked for it is gone
        this.#arm(open, restore(row, callerId));
      }
    }
  }

  /** Resolves when the answer is stored. */
  async receiveAnswer(received: ReceivedEvent & { readonly message: TaskAccepted | TaskRejected }): Promise<void> {
    const { message } = received;
    const named = namedSubmit(received);
    const messageId = named ?? this.#onlyOpen(received.appId);
    const isGuess = named === undefined;
    if (message.type === 'task_rejected') {
      return this.#patience.with(() => this.#rejected(message, messageId, isGuess));
    }
    // At once: the session's first events are on our heels.
    const accepted = this.#patience.with(() => this.#accepted({ ...received, message }, messageId, isGuess));
    const [session] = await Promise.all([this.#parts.follower.expect(message.session_id, accepted), accepted]);
    if (session) this.#forget(session.follow.messageId)?.answer.resolve({ accepted: session });
  }

  close(): void {
    this.#closed = true;
    this.#patience.close();
    for (const open of this.#open.values()) {
      this.#parts.settings.clock.clearTimeout(open.timer);
      open.answer.promise.catch(() => {});
      open.answer.reject(closedError());
    }
    this.#open.clear();
  }

  /** Where there is no doubt (D-03). */
  #onlyOpen(appId: string | undefined): string | undefined {
    const open = [...this.#open.values()].filter(({ calleeId }) => appId === undefined || calleeId === appId);
    return open.length === 1 ? open[0]?.messageId : undefined;
  }

  /** Answers what is followed from now on. */
  async #accepted(
    received: ReceivedEvent & { readonly message: TaskAccepted },
    messageId: string | undefined,
    isGuess: boolean,
  ): Promise<Follow | undefined> {
    const { message, userId } = received;
    const { settings, follower } = this.#parts;
    const { callerId, store, clock } = settings;
    const known = await this.#known(message.session_id);
    if (known && (isGuess || known.messageId === messageId)) return known; // the same answer again
    const row = messageId === undefined ? undefined : await store.get('submissions', [callerId, messageId]);
    if (known || messageId === undefined || row === undefined) return void follower.tell('onUncorrelated', message);
    const follow: Follow = {
      callerId,
      sessionId: message.session_id,
      calleeId: String(row.callee_id),
      userId,
      messageId,
      cursor: -1,
      holes: [],
      state: 'PENDING',
      accepted: message,
      result: undefined,
      finalState: undefined,
      startedAt: clock.now(),
      endedAt: undefined,
    };
    if (row.status !== 'open') {
      return this.#refuse(follow, row.status === 'accepted' ? 'Accepted twice' : 'Accepted too late');
    }
    const answered = { status: 'accepted', session_id: message.session_id, answer: JSON.stringify(message) };
    const outcome = await store.commit([
      { patch: 'submissions', key: [callerId, messageId], set: answered, if: { status: 'open' } },
      { insert: 'follows', row: rowOfFollow(follow) },
    ]);
    // Else it was given up meanwhile, or another process of ours was faster.
    return outcome === 'committed' ? follow : this.#accepted(received, messageId, isGuess);
  }

  /** Nobody waits for this session: it is ended before its acceptance is acknowledged (HCP-205). */
  async #refuse(follow: Follow, reason: string): Promise<undefined> {
    const { settings, follower, abort } = this.#parts;
    const about = { session_id: follow.sessionId, message_id: follow.messageId, reason };
    settings.logger.warn(about, 'A session nobody waits for: aborted');
    try {
      await abort(follow, reason);
    } catch (error) {
      if (!isHcpError(error, 'callee_unreachable')) throw error;
      settings.logger.warn({ ...about, err: error }, 'A session nobody waits for could not be aborted');
    }
    follower.tell('onUncorrelated', follow.accepted);
  }

  async #known(sessionId: string): Promise<Follow | undefined> {
    const { store, callerId } = this.#parts.settings;
    const row = await store.get('follows', [callerId, sessionId]);
    return row && followOf(row);
  }

  async #rejected(message: TaskRejected, messageId: string | undefined, isGuess: boolean): Promise<void> {
    const { settings, follower } = this.#parts;
    const { callerId, store, logger } = settings;
    if (this.#guessed.has(message.message_id)) return; // the same answer again
    const key = [callerId, messageId ?? ''];
    const row = messageId === undefined ? undefined : await store.get('submissions', key);
    if (messageId === undefined || row === undefined) return follower.tell('onUncorrelated', message);
    if (isGuess) this.#noteGuess(message.message_id);
    const set = { status: 'rejected', answer: JSON.stringify(message) };
    const outcome = await store.commit([{ patch: 'submissions', key, set, if: { status: 'open' } }]);
    if (outcome === 'committed') this.#forget(messageId)?.answer.resolve({ rejected: message });
    else if (row.answer !== set.answer) {
      logger.warn({ message_id: messageId, status: row.status }, 'A rejection of a submit that is not open: ignored');
    }
  }

  #noteGuess(messageId: string): void {
    this.#guessed.add(messageId);
    const [oldest] = this.#guessed;
    if (this.#guessed.size > REMEMBERED_GUESSES && oldest !== undefined) this.#guessed.delete(oldest);
  }

  #remember(messageId: string, calleeId: string): OpenSubmit {
    const answer = Promise.withResolvers<Answer>();
    const open = { messageId, calleeId, answer, gaveUp: new AbortController(), tries: 1, timer: undefined };
    this.#open.set(messageId, open);
    return open;
  }

  #forget(messageId: string): OpenSubmit | undefined {
    const open = this.#open.get(messageId);
    this.#open.delete(messageId);
    this.#parts.settings.clock.clearTimeout(open?.timer);
    return open;
  }

  async #send(open: OpenSubmit, built: BuiltMessage<'task_submit'>): Promise<void> {
    const { signal } = open.gaveUp;
    if ((await this.#parts.channel.publish(open.calleeId, built, { signal })) === 'confirmed')
      return this.#arm(open, built);
    await this.#abandon(open, new HcpError('callee_unreachable', `There is no callee ${open.calleeId}`));
  }

  #arm(open: OpenSubmit, built: BuiltMessage<'task_submit'>): void {
    const { clock, submitTimeoutMs, submitTries, logger } = this.#parts.settings;
    if (!this.#open.has(open.messageId)) return; // answered meanwhile
    open.timer = clock.setTimeout(() => {
      const work =
        open.tries++ < submitTries
          ? this.#send(open, built)
          : this.#abandon(open, new HcpError('submit_timeout', `Callee ${open.calleeId} does not answer`));
      work.catch((error: unknown) => {
        if (!this.#open.has(open.messageId)) return;
        logger.error({ err: error, message_id: open.messageId }, 'A submit could not be repeated');
        this.#arm(open, built);
      });
    }, submitTimeoutMs);
  }

  /** From now on an acceptance comes too late, and is aborted. */
  async #abandon(open: OpenSubmit, error: unknown): Promise<void> {
    const { callerId, store, logger } = this.#parts.settings;
    if (!this.#open.has(open.messageId)) return; // answered, or given up before
    const key = [callerId, open.messageId];
    try {
      const outcome = await store.commit([
        { patch: 'submissions', key, set: { status: 'abandoned' }, if: { status: 'open' } },
      ]);
      if (outcome !== 'committed') return await this.#adopt(open);
    } catch (failure) {
      // It stays open in the store: a later life sends it again, or finds its answer.
      logger.error({ err: failure, message_id: open.messageId }, 'That a submit was given up could not be stored');
    }
    this.#forget(open.messageId);
    open.gaveUp.abort();
    open.answer.reject(error);
    if (isHcpError(error)) this.#parts.follower.tell('onTrouble', error, undefined);
  }

  /** Looks whether another process of ours got an answer that is waited for here. */
  async refresh(): Promise<void> {
    const { callerId, store } = this.#parts.settings;
    for (const open of [...this.#open.values()]) {
      const row = await store.get('submissions', [callerId, open.messageId]);
      if (row !== undefined && row.status !== 'open' && this.#open.has(open.messageId)) await this.#adopt(open);
    }
  }

  /** The answer was stored meanwhile, perhaps by another process of ours: it counts. */
  async #adopt(open: OpenSubmit): Promise<void> {
    const { callerId, store } = this.#parts.settings;
    const row = await store.get('submissions', [callerId, open.messageId]);
    const accepted = typeof row?.session_id === 'string' && (await this.#parts.follower.find(row.session_id));
    this.#forget(open.messageId);
    if (accepted) open.answer.resolve({ accepted });
    else if (row?.status === 'rejected') open.answer.resolve({ rejected: JSON.parse(String(row.answer)) });
    else open.answer.reject(new HcpError('submit_timeout', 'The submit was given up by another process'));
  }
}

/** The submit an answer names, in its payload or its header. */
function namedSubmit({ message, headers }: ReceivedEvent): string | undefined {
  const named = 'in_reply_to' in message.payload ? message.payload.in_reply_to : headers[IN_REPLY_TO_HEADER];
  return typeof named === 'string' ? named : undefined;
}

function closedError(): HcpError {
  return new HcpError('caller_closed', 'The caller is closed; the submit stays open in the store');
}

function restore(row: Row, callerId: string): BuiltMessage<'task_submit'> {
  // Only submits are stored there.
  return restoreMessage(Buffer.from(String(row.request)), callerId) as BuiltMessage<'task_submit'>;
}
