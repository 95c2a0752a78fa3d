import { expectThat } from '../wire/expect.ts';
import { at, type Heard, isEvent, tell } from '../wire/heard.ts';
import type { Submission } from './bench.ts';

export interface SessionParts {
  readonly submission: Submission;
  readonly accepted: Heard;
  take(what: string, sessionId: string, withinMs?: number): Promise<Heard>;
  send(type: string, sessionId: string, payload: object): Promise<void>;
}

/** A session of the callee, heard from its beginning. */
export class Session {
  readonly id: string;
  readonly token: string;
  readonly submission: Submission;
  readonly accepted: Heard;
  /** What was heard of it so far, behind `task_accepted`. */
  readonly heard: Heard[] = [];
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.submission = parts.submission;
    this.accepted = parts.accepted;
    this.id = String(parts.accepted.sessionId);
    this.token = String(at(parts.accepted, '/payload/session_token'));
  }

  get isClosed(): boolean {
    return this.heard.some((heard) => isEvent(heard, 'session_closed'));
  }

  /** In a few words each, `task_accepted` included. */
  get story(): string[] {
    return [this.accepted, ...this.heard].map(tell);
  }

  async next(what = 'the next message', withinMs?: number): Promise<Heard> {
    const heard = await this.#parts.take(`${what} of the session`, this.id, withinMs);
    this.heard.push(heard);
    return heard;
  }

  /** Hears on until this comes. */
  async until(what: string, where: (heard: Heard) => boolean, withinMs?: number): Promise<Heard> {
    for (;;) {
      const heard = await this.next(what, withinMs);
      if (where(heard)) return heard;
      expectThat(!this.isClosed, `The session ended before ${what}: ${this.story.join(', ')}`);
    }
  }

  event(type: string): Promise<Heard> {
    return this.until(type, (heard) => isEvent(heard, type));
  }

  state(to: string): Promise<Heard> {
    const isChange = (heard: Heard) => isEvent(heard, 'state_changed') && at(heard, '/payload/data/to_state') === to;
    return this.until(`→${to}`, isChange);
  }

  /** Hears everything up to `session_closed`. */
  async hearOut(withinMs?: number): Promise<this> {
    await this.until('session_closed', (heard) => isEvent(heard, 'session_closed'), withinMs);
    return this;
  }

  /** The `task_completed` or `task_failed` heard. */
  get result(): Heard {
    const result = this.heard.find(({ type }) => type === 'task_completed' || type === 'task_failed');
    expectThat(result, `There is no result: ${this.story.join(', ')}`);
    return result;
  }

  /** Sends a command about it, with its token unless told otherwise. */
  command(type: string, payload: object = {}): Promise<void> {
    return this.#parts.send(type, this.id, { session_token: this.token, ...payload });
  }

  abort(payload: object = {}): Promise<void> {
    return this.command('abort', payload);
  }
}
