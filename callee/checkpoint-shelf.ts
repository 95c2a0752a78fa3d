import type { Checkpoint } from '../session/checkpoints.ts';

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

  /** Answers the ids of those that are superfluous now. */
  add(checkpoint: Shelved): string[] {
    const all = [checkpoint, ...this.#shelved];
    const resumeFrom = all.find(({ resumable }) => resumable);
    const isKept = (each: Shelved, index: number) => index < this.#capacity || each === resumeFrom;
    this.#shelved = all.filter(isKept);
    return all.filter((each, index) => !isKept(each, index)).map(({ checkpointId }) => checkpointId);
  }
}
