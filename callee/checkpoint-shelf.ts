import { type Checkpoint, type CheckpointDraft, deleteCheckpoint, insertCheckpoint } from '../session/checkpoints.ts';
import type { BuiltMessage } from '../shared/messages/build.ts';
import type { Write } from '../shared/store/store.ts';

type Shelved = Pick<Checkpoint, 'checkpointId' | 'resumable'>;

/** Which checkpoints of a session are kept: the newest ones, and whatever happens one to continue from. */
export class CheckpointShelf {
  readonly #capacity: number;
  /** Newest first. */
  #shelved: readonly Shelved[];

  constructor(stored: readonly Shelved[], capacity: number) {
    this.#shelved = stored;
    this.#capacity = capacity;
  }

  get newest(): string | undefined {
    return this.#shelved[0]?.checkpointId;
  }

  get isResumable(): boolean {
    return this.#shelved.some(({ resumable }) => resumable);
  }

  /** Stores one, with the event that tells of it, in place of those that are superfluous then. */
  store(sessionId: string, draft: CheckpointDraft, [told]: readonly BuiltMessage[]): Write[] {
    const sequence = told?.message.type === 'event' ? told.message.payload.sequence : 0;
    const superfluous = this.add(draft);
    return [insertCheckpoint(sessionId, sequence, draft), ...superfluous.map((id) => deleteCheckpoint(sessionId, id))];
  }

  /** Answers the ids of those that are superfluous now. */
  add(checkpoint: Shelved): string[] {
    const all = [checkpoint, ...this.#shelved];
    const resumeFrom = all.find(({ resumable }) => resumable);
    const isKept = (each: Shelved, index: number) => index < this.#capacity || each === resumeFrom;
    this.#shelved = all.filter(isKept);
    return all.filter((each, index) => !isKept(each, index)).map(({ checkpointId }) => checkpointId);
  }
}
