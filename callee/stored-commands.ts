import type { Abort, XPause, XReplayUnavailableData, XResume } from '../schemas/types.ts';
import type { SessionRecord } from '../session/record.ts';
import { scanAll } from '../shared/store/scan-all.ts';
import type { Row, Write } from '../shared/store/store.ts';
import type { Host } from './host.ts';

/** What the owner of a session is to say to its caller, who asked another instance. */
export type Answer =
  | { readonly type: 'x-status' }
  | { readonly type: 'x-replay'; readonly unavailable: readonly XReplayUnavailableData[] };

/** The operator of the callee takes a session's token away. */
export interface Revocation {
  readonly type: 'revocation';
  readonly reason: string;
}

/** What is to be done with a session. */
export type Job = Abort | XPause | XResume | Revocation | Answer;

/** Something for a session, and who wanted it. */
export interface Errand<Task extends Job = Job> {
  readonly sessionId: string;
  /** Of the command it comes from. */
  readonly messageId: string;
  readonly task: Task;
  readonly userId: string | undefined;
  readonly appId: string | undefined;
}

/** Errands for sessions that another instance runs: stored, until that one has done them. */
export class StoredCommands {
  readonly #host: Host;
  readonly #ring: (instanceId: string) => void;

  /** `ring`: tells another instance to look into the store. */
  constructor(host: Host, ring: (instanceId: string) => void) {
    this.#host = host;
    this.#ring = ring;
  }

  /** Resolves when whoever runs the session, now or next, will find it. */
  async put({ calleeId, owner }: SessionRecord, errand: Errand): Promise<void> {
    const row = {
      session_id: errand.sessionId,
      message_id: errand.messageId,
      callee_id: calleeId,
      received_at: this.#host.clock.now(),
      body: JSON.stringify(errand.task),
      user_id: errand.userId ?? null,
      app_id: errand.appId ?? null,
    };
    await this.#host.store.commit([{ put: 'commands', row }]);
    if (owner !== '') this.#ring(owner);
  }

  /** All of this callee, the oldest first; `forget` is the write that ends one. */
  async *all(): AsyncIterable<{ readonly errand: Errand; readonly forget: Write }> {
    const where = [this.#host.settings.calleeId];
    for await (const row of scanAll(this.#host.store, 'commands', 'by_callee', { where })) {
      yield { errand: errandOf(row), forget: forgetting(row) };
    }
  }
}

function errandOf(row: Row): Errand {
  const [userId, appId] = [row.user_id, row.app_id].map((id) => (typeof id === 'string' ? id : undefined));
  const task = JSON.parse(String(row.body)) as Job; // written by put alone
  return { sessionId: String(row.session_id), messageId: String(row.message_id), task, userId, appId };
}

function forgetting(row: Row): Write {
  return { delete: 'commands', key: [String(row.session_id), String(row.message_id)] };
}
