import type { TaskRejected } from '../schemas/types.ts';
import { HcpError } from '../shared/errors.ts';
import type { BuiltMessage } from '../shared/messages/build.ts';
import type { Approval } from './approvals.ts';
import type { EventChannel } from './event-channel.ts';
import type { FollowedSession } from './followed-session.ts';
import type { CallerSettings } from './options.ts';

/** How a submit was answered. */
export type Answer = { readonly accepted: FollowedSession } | { readonly rejected: TaskRejected };

/** A submit whose answer is waited for in this process. */
export interface OpenSubmit {
  readonly messageId: string;
  readonly calleeId: string;
  readonly built: BuiltMessage<'task_submit'>;
  readonly answer: PromiseWithResolvers<Answer>;
  /** Stops what is still being sent. */
  readonly gaveUp: AbortController;
  /** A human decides: there is nothing to be sent again. */
  approval: Approval | undefined;
  tries: number;
  timer: unknown;
}

export interface OpenSubmitParts {
  readonly settings: CallerSettings;
  readonly channel: EventChannel;
  /** Nothing more is done for this submit. */
  readonly abandon: (open: OpenSubmit, error: unknown) => Promise<void>;
}

/** Sends submits until they are answered, the same bytes each time (HCP-202). */
export class OpenSubmits {
  readonly #parts: OpenSubmitParts;
  readonly #open = new Map<string, OpenSubmit>();

  constructor(parts: OpenSubmitParts) {
    this.#parts = parts;
  }

  get all(): OpenSubmit[] {
    return [...this.#open.values()];
  }

  add(calleeId: string, built: BuiltMessage<'task_submit'>, approval?: Approval): OpenSubmit {
    const messageId = built.message.message_id;
    const answer = Promise.withResolvers<Answer>();
    const gaveUp = new AbortController();
    const open = { messageId, calleeId, built, answer, gaveUp, approval, tries: 1, timer: undefined };
    this.#open.set(messageId, open);
    return open;
  }

  has({ messageId }: OpenSubmit): boolean {
    return this.#open.has(messageId);
  }

  /** It is answered, or given up: nothing more is sent. */
  take(messageId: string): OpenSubmit | undefined {
    const open = this.#open.get(messageId);
    this.#open.delete(messageId);
    this.#parts.settings.clock.clearTimeout(open?.timer);
    return open;
  }

  async send(open: OpenSubmit): Promise<void> {
    const { signal } = open.gaveUp;
    if ((await this.#parts.channel.publish(open.calleeId, open.built, { signal })) === 'confirmed')
      return this.arm(open);
    await this.#parts.abandon(open, new HcpError('callee_unreachable', `There is no callee ${open.calleeId}`));
  }

  /** Gives the callee, or the human it asks, time to answer. */
  arm(open: OpenSubmit): void {
    const { clock, submitTimeoutMs, graceMs, logger } = this.#parts.settings;
    if (!this.has(open)) return; // answered meanwhile
    clock.clearTimeout(open.timer);
    const { approval } = open;
    // An answer that came while nobody was listening may still be on its way: hence the grace from now on.
    const waitMs = approval ? Math.max(0, approval.until - clock.now()) + graceMs : submitTimeoutMs;
    open.timer = clock.setTimeout(() => {
      this.#overdue(open).catch((error: unknown) => {
        if (!this.has(open)) return;
        logger.error({ err: error, message_id: open.messageId }, 'A submit could not be repeated');
        this.arm(open);
      });
    }, waitMs);
  }

  /** A human decides: it is not sent again, and waited for until then. */
  suspend(messageId: string, approval: Approval): void {
    const open = this.#open.get(messageId);
    if (open === undefined || open.approval) return;
    open.approval = approval;
    this.arm(open);
  }

  close(error: HcpError): void {
    for (const { messageId, answer } of this.all) {
      this.take(messageId);
      answer.promise.catch(() => {});
      answer.reject(error);
    }
  }

  #overdue(open: OpenSubmit): Promise<void> {
    const { abandon, settings } = this.#parts;
    if (open.approval === undefined && open.tries++ < settings.submitTries) return this.send(open);
    const what = open.approval ? 'has not decided in time' : 'does not answer';
    return abandon(open, new HcpError('submit_timeout', `Callee ${open.calleeId} ${what}`));
  }
}
