import { recordOf, type SessionRecord, type Violation } from '../session/record.ts';
import { newMessageId } from '../shared/ids.ts';
import type { Write } from '../shared/store/store.ts';
import type { Host } from './host.ts';
import type { LiveSession } from './session.ts';
import type { Errand, Revocation, StoredCommands } from './stored-commands.ts';

export interface RevocationParts {
  readonly host: Host;
  readonly live: ReadonlyMap<string, LiveSession>;
  readonly stored: StoredCommands;
}

/** Takes away what a session was granted: by the callee's own operator, here or in the instance that runs it. */
export class Revocations {
  readonly #parts: RevocationParts;

  constructor(parts: RevocationParts) {
    this.#parts = parts;
  }

  /** Resolves when it is durable, and done if the session runs here. Answers whether there was a session to end. */
  async revoke(sessionId: string, reason: string): Promise<boolean> {
    const { host, live, stored } = this.#parts;
    const session = live.get(sessionId);
    if (session && isUnderWay(session.record)) {
      await session.safety.violate(violationFor(reason));
      return true;
    }
    const row = await host.store.get('sessions', [sessionId]);
    const record = row?.callee_id === host.settings.calleeId ? recordOf(row) : undefined;
    if (record === undefined || !isUnderWay(record)) return false;
    // On record first: should its owner be gone, whoever takes it over never starts it.
    const set = { violation: JSON.stringify(violationFor(reason)) };
    const writes: Write[] = [{ patch: 'sessions', key: [sessionId], set, if: { state: record.state } }];
    const audit = [{ kind: 'revocation', sessionId, details: { caller_id: record.callerId, reason } }] as const;
    const outcome = await host.committer.commit({ fence: { broken: false }, entries: [], writes, audit });
    if (outcome === 'conflict') return this.revoke(sessionId, reason); // it moved on meanwhile
    const task = { type: 'revocation', reason } as const;
    await stored.put(record, { sessionId, messageId: newMessageId(), task, userId: undefined, appId: undefined });
    return true;
  }

  /** Obeys what another instance stored, if the session runs here, and forgets what is obsolete. */
  async takeStored({ sessionId, task }: Errand<Revocation>, forget: Write): Promise<void> {
    const { host, live } = this.#parts;
    const session = live.get(sessionId);
    if (session && isUnderWay(session.record)) {
      // Not awaited: an emergency that takes its time must keep neither the lease nor other commands waiting.
      const ended = session.safety.violate(violationFor(task.reason)).then(() => host.store.commit([forget]));
      ended.catch((error: unknown) => {
        host.logger.error({ err: error, session_id: sessionId }, 'A session could not be revoked: tried again later');
      });
      return;
    }
    const row = await host.store.get('sessions', [sessionId]);
    if (row === undefined || !isUnderWay(recordOf(row))) await host.store.commit([forget]);
  }
}

/** An aborted one ends by itself, and one that is not accepted has nothing to take away. */
function isUnderWay({ state }: SessionRecord): boolean {
  return state === 'RUNNING' || state === 'PAUSED';
}

function violationFor(reason: string): Violation {
  return { action: 'revocation', condition: 'token', message: reason };
}
