import type { EventMessage, TaskAccepted, TaskRejected, TaskSubmitPayload } from '../schemas/types.ts';
import { HcpError, isHcpError } from '../shared/errors.ts';
import { type BuiltMessage, buildMessage, restoreMessage } from '../shared/messages/build.ts';
import { IN_REPLY_TO_HEADER } from '../shared/messages/message.ts';
import type { Row } from '../shared/store/store.ts';
import { Turns } from '../shared/turns.ts';
import { approvalOf, forgetPending, storePending } from './approvals.ts';
import type { AbortTarget } from './commands.ts';
import type { EventChannel, ReceivedEvent, Verdict } from './event-channel.ts';
import { type Follow, followOf, rowOfFollow } from './follow.ts';
import type { Follower } from './follower.ts';
import { pages } from './housekeeping.ts';
import { type Answer, type OpenSubmit, OpenSubmits } from './open-submits.ts';
import type { CallerSettings } from './options.ts';
import { Patience } from './patience.ts';

/** What a program asks a callee for; the caller's own id is filled in. */
export type Task = Omit<TaskSubmitPayload, 'caller_id'>;

/** What makes gaps, results, waiting and rejections easier to live with: asked of every callee, required of none. */
const WANTED = {
  'replay/1': { required: false },
  'stream/1': { required: false },
  'status/1': { required: false },
  'approval/1': { required: false },
  'cure/1': { required: false },
} as const;

const REMEMBERED_GUESSES = 1000;

export interface SubmissionParts {
  readonly settings: CallerSettings;
  readonly channel: EventChannel;
  readonly follower: Follower;
  /** Ends a session nobody asked for, or waits for any more. */
  readonly abort: (target: AbortTarget, reason: string) => Promise<void>;
}

/** Keeps submits until they are answered or given up, and finds the submit an answer is for. */
export class CallerSubmissions {
  readonly #parts: SubmissionParts;
  readonly #patience: Patience;
  readonly #open: OpenSubmits;
  /** Rejections that were matched by guess: the same one again must not be taken for the answer to the next submit. */
  readonly #guessed = new Set<string>();
  /** The last answer to a submit that is being stored. */
  readonly #answering = new Turns<string>();
  #closed = false;

  constructor(parts: SubmissionParts) {
    this.#parts = parts;
    this.#patience = new Patience(parts.settings.clock, parts.settings.logger);
    const { settings, channel } = parts;
    this.#open = new OpenSubmits({ settings, channel, abandon: (open, error) => this.#abandon(open, error) });
  }

  /** Stored before it is sent: a restart can still match the answer (HCP-203). */
  async submit(task: Task, calleeId: string, signal?: AbortSignal): Promise<Answer> {
    const { callerId, store, clock, limits } = this.#parts.settings;
    signal?.throwIfAborted();
    const payload = { ...task, caller_id: callerId, extensions: { ...WANTED, ...task.extensions } };
    const draft = { type: 'task_submit', sessionId: null, senderId: callerId, payload } as const;
    const built = buildMessage(draft, { clock, limits });
    const row = {
      caller_id: callerId,
      message_id: built.message.message_id,
      callee_id: calleeId,
      status: 'open',
      submitted_at: clock.now(),
      request: built.body.toString(),
      session_id: null,
      approval_until: null,
      answer: null,
    };
    await store.commit([{ insert: 'submissions', row }]);
    if (this.#closed) throw closedError();
    const open = this.#open.add(calleeId, built);
    const stop = () => void this.#abandon(open, signal?.reason);
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    // Not awaited: a broker that is away must not keep the program from giving up.
    this.#open.send(open).catch((error: unknown) => this.#abandon(open, error));
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
        const open = this.#open.add(String(row.callee_id), restore(row, callerId), approvalOf(row));
        open.answer.promise.catch(() => {}); // whoever asked for it is gone
        this.#open.arm(open);
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
      return this.#inTurn(messageId, () => this.#patience.with(() => this.#rejected(message, messageId, isGuess)));
    }
    // At once: the session's first events are on our heels.
    const accepted = this.#inTurn(messageId, () =>
      this.#patience.with(() => this.#accepted({ ...received, message }, messageId, isGuess)),
    );
    const [session] = await Promise.all([this.#parts.follower.expect(message.session_id, accepted), accepted]);
    if (session) this.#open.take(session.follow.messageId)?.answer.resolve({ accepted: session });
  }

  /** A human decides about a submit (P3). Resolves when that is stored. */
  async receivePending(received: ReceivedEvent & { readonly message: EventMessage }): Promise<Verdict> {
    const { settings, follower } = this.#parts;
    const { message, appId } = received;
    const fate = await this.#patience.with(() => storePending(settings, received));
    switch (fate) {
      case 'again':
        return;
      case 'foreign': {
        const about = { session_id: message.session_id, message_id: message.message_id, app_id: appId };
        settings.logger.error(about, 'Event of another callee: refused');
        return 'reject';
      }
      case 'unknown':
        return follower.receive(received); // of a session we follow, or an orphan
    }
    if ('late' in fate) {
      this.#withdraw(fate.late, 'Nobody waits for it');
      return follower.receive(received);
    }
    this.#open.suspend(fate.stored.messageId, fate.approval);
    follower.tell('onApprovalPending', fate.stored);
  }

  close(): void {
    this.#closed = true;
    this.#patience.close();
    this.#open.close(closedError());
  }

  /** Of two answers to one submit the first counts, however long storing it takes (V-122). */
  #inTurn<T>(messageId: string | undefined, store: () => Promise<T>): Promise<T> {
    return messageId === undefined ? store() : this.#answering.take(messageId, store);
  }

  /** Where there is no doubt (D-03). */
  #onlyOpen(appId: string | undefined): string | undefined {
    const open = this.#open.all.filter(({ calleeId }) => appId === undefined || calleeId === appId);
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
    // A copy of this very answer was stored since we looked.
    if (row.status === 'accepted' && row.session_id === message.session_id) return this.#known(message.session_id);
    if (row.status !== 'open') {
      return this.#refuse(follow, row.status === 'accepted' ? 'Accepted twice' : 'Accepted too late');
    }
    const set = { status: 'accepted', session_id: message.session_id, answer: JSON.stringify(message) };
    const { session_id = null } = row;
    const outcome = await store.commit([
      { patch: 'submissions', key: [callerId, messageId], set, if: { status: 'open', session_id } },
      { insert: 'follows', row: rowOfFollow(follow) },
      ...(session_id === message.session_id ? [] : forgetPending(row)),
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
    const { logger } = settings;
    if (this.#guessed.has(message.message_id)) return; // the same answer again
    const answer = JSON.stringify(message);
    const row = messageId === undefined ? undefined : await this.#conclude(messageId, { status: 'rejected', answer });
    if (messageId === undefined || row === undefined) return follower.tell('onUncorrelated', message);
    if (isGuess) this.#noteGuess(message.message_id);
    if (row.status === 'open') this.#open.take(messageId)?.answer.resolve({ rejected: message });
    else if (row.status !== 'abandoned' && row.answer !== answer) {
      logger.warn({ message_id: messageId, status: row.status }, 'A rejection of a submit that is not open: ignored');
    }
  }

  /** Ends the waiting, if the submit is still open; answers the row as it was. */
  async #conclude(messageId: string, set: Row): Promise<Row | undefined> {
    const { callerId, store } = this.#parts.settings;
    const key = [callerId, messageId];
    const row = await store.get('submissions', key);
    if (row?.status !== 'open') return row;
    const { status, session_id = null } = row;
    const outcome = await store.commit([
      { patch: 'submissions', key, set, if: { status, session_id } },
      ...forgetPending(row),
    ]);
    return outcome === 'committed' ? row : this.#conclude(messageId, set);
  }

  #noteGuess(messageId: string): void {
    this.#guessed.add(messageId);
    const [oldest] = this.#guessed;
    if (this.#guessed.size > REMEMBERED_GUESSES && oldest !== undefined) this.#guessed.delete(oldest);
  }

  /** From now on an acceptance comes too late, and is aborted. */
  async #abandon(open: OpenSubmit, error: unknown): Promise<void> {
    const { logger } = this.#parts.settings;
    if (!this.#open.has(open) || open.gaveUp.signal.aborted) return; // answered, or given up before
    open.gaveUp.abort();
    let { approval } = open;
    try {
      const row = await this.#conclude(open.messageId, { status: 'abandoned' });
      if (row?.status !== 'open') return await this.#adopt(open);
      approval = approvalOf(row);
    } catch (failure) {
      // It stays open in the store: a later life sends it again, or finds its answer.
      logger.error({ err: failure, message_id: open.messageId }, 'That a submit was given up could not be stored');
    }
    this.#open.take(open.messageId);
    if (approval) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#withdraw({ sessionId: approval.sessionId, calleeId: open.calleeId }, reason);
    }
    open.answer.reject(error);
    if (isHcpError(error)) this.#parts.follower.tell('onTrouble', error, undefined);
  }

  /** Nobody needs to decide any more (P3). Not awaited: should it get lost, the acceptance is aborted. */
  #withdraw({ sessionId, calleeId }: AbortTarget, reason: string): void {
    this.#parts.abort({ sessionId, calleeId }, reason).catch((error: unknown) => {
      const { logger } = this.#parts.settings;
      logger.warn({ err: error, session_id: sessionId }, 'A task could not be withdrawn');
    });
  }

  /** Looks whether another process of ours got an answer that is waited for here. */
  async refresh(): Promise<void> {
    const { callerId, store } = this.#parts.settings;
    for (const open of this.#open.all) {
      const row = await store.get('submissions', [callerId, open.messageId]);
      if (row === undefined || !this.#open.has(open)) continue;
      const approval = approvalOf(row);
      if (row.status !== 'open') await this.#adopt(open);
      else if (approval) this.#open.suspend(open.messageId, approval);
    }
  }

  /** The answer was stored meanwhile, perhaps by another process of ours: it counts. */
  async #adopt(open: OpenSubmit): Promise<void> {
    const { callerId, store } = this.#parts.settings;
    const row = await store.get('submissions', [callerId, open.messageId]);
    const accepted = row?.status === 'accepted' && (await this.#parts.follower.find(String(row.session_id)));
    this.#open.take(open.messageId);
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
