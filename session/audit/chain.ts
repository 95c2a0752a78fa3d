import type { Clock } from '../../shared/clock.ts';
import { newUlid } from '../../shared/ids.ts';
import type { StoreReader, Write } from '../../shared/store/store.ts';
import { auditHeads } from './read.ts';
import { type AuditDraft, type AuditHead, auditRow, NO_HASH } from './record.ts';

/** A draft with the time it was made at. */
export interface TimedDraft extends AuditDraft {
  readonly at: number;
}

/** Records that have their places in the chain, to be committed as a whole. */
export interface LinkedRecords {
  readonly writes: readonly Write[];
  /** Where the chain ends with them. */
  readonly head: AuditHead;
}

/** Names the heads that a new chain found. */
export type NamedHead = readonly [chain: string, length: number, hash: string];

/**
 * The audit chain of one life of a process: each record seals the one before it. It begins with the first record, by
 * naming the heads of all chains that are there, so a chain that is cut or removed later is missed. Belongs to one group
 * committer, which calls it for one commit at a time.
 */
export class AuditChain {
  readonly #store: StoreReader;
  readonly #calleeId: string;
  readonly #clock: Clock;
  /** Chains of ours that somebody else touched, as we knew them. */
  readonly #abandoned: AuditHead[] = [];
  #head: AuditHead;

  constructor(store: StoreReader, { calleeId, clock }: { readonly calleeId: string; readonly clock: Clock }) {
    this.#store = store;
    this.#calleeId = calleeId;
    this.#clock = clock;
    this.#head = this.#fresh();
  }

  /** Gives drafts their places. Nothing changes before {@link follow}: what could not be committed is linked again. */
  async link(drafts: readonly TimedDraft[]): Promise<LinkedRecords> {
    const before = this.#head;
    const isNew = before.length === 0;
    const writes: Write[] = [];
    let head = before;
    for (const draft of isNew ? [await this.#opening(), ...drafts] : drafts) {
      const row = auditRow(this.#calleeId, head, draft);
      writes.push({ insert: 'audit', row });
      head = { chain: head.chain, length: row.position, hash: row.hash };
    }
    return { writes: [...writes, isNew ? this.#insertHead(head) : this.#moveHead(before, head)], head };
  }

  /** Goes on behind records that were committed. */
  follow({ head }: LinkedRecords): void {
    this.#head = head;
  }

  /** Whether the stored chain ends with these records: a commit whose answer was lost. Nobody else writes this chain. */
  async isStored({ head: { chain, length, hash } }: LinkedRecords): Promise<boolean> {
    const row = await this.#store.get('audit_heads', [this.#calleeId, chain]);
    return row?.length === length && row.hash === hash;
  }

  /** Leaves a chain that is not as we wrote it to whoever verifies it, and begins another, which names what we knew. */
  abandon(): void {
    if (this.#head.length > 0) this.#abandoned.push(this.#head);
    this.#head = this.#fresh();
  }

  #fresh(): AuditHead {
    return { chain: newUlid(this.#clock.now()), length: 0, hash: NO_HASH };
  }

  async #opening() {
    const found = await auditHeads(this.#store, this.#calleeId);
    // What we know of our own chains counts, not what the store says of them by now.
    const known = new Map([...found, ...this.#abandoned].map((head) => [head.chain, head]));
    const heads = [...known.values()]
      .map(({ chain, length, hash }): NamedHead => [chain, length, hash])
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return { kind: 'opened', at: this.#clock.now(), details: { heads } };
  }

  #insertHead(head: AuditHead): Write {
    return { insert: 'audit_heads', row: { callee_id: this.#calleeId, ...head } };
  }

  #moveHead({ chain, ...before }: AuditHead, { length, hash }: AuditHead): Write {
    return { patch: 'audit_heads', key: [this.#calleeId, chain], set: { length, hash }, if: before };
  }
}
