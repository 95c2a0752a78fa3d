import { backoffMs } from '../shared/backoff.ts';
import { type Clock, delay } from '../shared/clock.ts';
import { HcpError, isHcpError } from '../shared/errors.ts';
import type { Logger } from '../shared/logger.ts';
import type { Conflict, Store, Write } from '../shared/store/store.ts';
import type { AuditChain, LinkedRecords } from './audit/chain.ts';
import type { AuditDraft } from './audit/record.ts';
import { isStored, type LogEntry, logRow } from './log.ts';

/** Shared by all commits of one ownership of a session: broken by the first conflict, and then for good. */
export interface Fence {
  broken: boolean;
  /** Why a commit could never be done: those behind it share its fate, or the log would have a hole. */
  failure?: unknown;
}

/** One atomic step of one session: what it said, and what else changes with it. */
export interface SessionCommit {
  readonly fence: Fence;
  readonly entries: readonly LogEntry[];
  readonly writes?: readonly Write[];
  /** Goes on record with the step, or not at all (HCP-312). */
  readonly audit?: readonly AuditDraft[];
}

interface Waiting extends SessionCommit {
  /** When it was asked for. */
  readonly at: number;
  readonly resolve: (outcome: 'committed' | 'conflict') => void;
  readonly reject: (error: unknown) => void;
}

/** Which step of a group met a conflict, and how many before it are stored. */
interface Hit {
  readonly index: number;
  readonly stored: number;
}

const LARGEST_GROUP = 500;
const RETRY = { firstDelayMs: 50, maxDelayMs: 5000 };

export interface GroupCommitterOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where steps go on record; nobody else may link to it. Steps with audit drafts need one. */
  readonly audit?: AuditChain;
}

/**
 * Commits the steps of many sessions together: while one store commit is under way the next ones collect, and go out as
 * one. No timer, no added wait when idle. Per session the order of the calls is kept, and nothing is written after a
 * conflict (another instance has the session then) or a failure. Each step goes on record once; only one without a log
 * entry, whose answer was lost while the committer was being closed, may do so twice.
 */
export class GroupCommitter {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #audit: AuditChain | undefined;
  readonly #closing = new AbortController();
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(store: Store, options: GroupCommitterOptions) {
    this.#store = store;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#audit = options.audit;
  }

  /** Resolves when it is durable. Waits for a store that is away. */
  commit(commit: SessionCommit): Promise<'committed' | 'conflict'> {
    return new Promise((resolve, reject) => {
      if (commit.audit?.length && this.#audit === undefined) throw new TypeError('Audit drafts need a chain');
      this.#waiting.push({ ...commit, at: this.#clock.now(), resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when nothing waits. What a store that is away keeps waiting is given up. */
  async close(): Promise<void> {
    this.#closing.abort(new HcpError('callee_closed', 'The callee was closed before the store answered'));
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      // What is asked for in this turn of the event loop goes together. And the loop must turn: a store that answers at
      // once would let one busy task keep everything else waiting, aborts and heartbeats too (HCP-125).
      await new Promise((resolve) => setImmediate(resolve));
      const group = this.#waiting.splice(0, LARGEST_GROUP);
      await this.#commitGroup(group);
    }
    this.#running = undefined;
  }

  async #commitGroup(group: readonly Waiting[]): Promise<void> {
    let left = group;
    while (left.length > 0) {
      const [fenced, alive] = split(left, ({ fence }) => fence.broken || fence.failure !== undefined);
      for (const { fence, resolve, reject } of fenced) fence.broken ? resolve('conflict') : reject(fence.failure);
      if (alive.length === 0) return;
      left = await this.#attempt(alive);
    }
  }

  /** Answers those that have to be tried again. */
  async #attempt(group: readonly Waiting[]): Promise<readonly Waiting[]> {
    try {
      const conflict = await this.#persist(group);
      if (conflict === undefined) {
        for (const waiting of group) waiting.resolve('committed');
        return [];
      }
      return await this.#isolate(group, conflict);
    } catch (error) {
      const [only, ...others] = group;
      if (only !== undefined && others.length === 0) {
        only.fence.failure = error;
        only.reject(error);
      } else for (const waiting of group) await this.#commitGroup([waiting]);
      return [];
    }
  }

  #persist(group: readonly Waiting[]): Promise<Hit | undefined> {
    return group.every(isPlain) ? this.#append(group) : this.#transact(group);
  }

  /** An event needs no transaction: the log's key is the fence, and every prefix of a log is valid. */
  async #append(group: readonly Waiting[]): Promise<Hit | undefined> {
    const rows = group.flatMap(({ entries }) => entries.map(logRow));
    const answer = await this.#patiently(() => this.#store.append('log', rows));
    if (answer === 'appended') return undefined;
    const index = owner(group, answer);
    return { index, stored: index };
  }

  async #transact(group: readonly Waiting[]): Promise<Hit | undefined> {
    const linked = await this.#link(group);
    const writes = [...group.flatMap(writesOf), ...(linked?.writes ?? [])];
    const answer = await this.#patiently(() => this.#store.commit(writes));
    // A group whose answer was lost meets its own records, which say that all of it is there.
    if (answer === 'committed' || (linked && (await this.#patiently(() => linked.chain.isStored(linked))))) {
      linked?.chain.follow(linked);
      return undefined;
    }
    const index = owner(group, answer);
    if (index >= 0) return { index, stored: 0 };
    this.#logger.error({ chain: linked?.head.chain }, 'The audit chain is not as it was left: another one begins');
    linked?.chain.abandon();
    return this.#transact(group);
  }

  /** What goes on record with a group, behind everything else of it. */
  async #link(group: readonly Waiting[]): Promise<(LinkedRecords & { readonly chain: AuditChain }) | undefined> {
    const chain = this.#audit;
    const drafts = group.flatMap(({ audit = [], at }) => audit.map((draft) => ({ ...draft, at })));
    if (chain === undefined || drafts.length === 0) return undefined;
    return { ...(await this.#patiently(() => chain.link(drafts))), chain };
  }

  async #isolate(group: readonly Waiting[], { index, stored }: Hit): Promise<readonly Waiting[]> {
    for (const waiting of group.slice(0, stored)) waiting.resolve('committed');
    const culprit = group[index] as Waiting; // the index came from this group
    const [first] = culprit.entries;
    // A commit whose answer was lost meets itself.
    if (first !== undefined && (await this.#patiently(() => isStored(this.#store, first)))) {
      return this.#remainder(group.slice(stored), culprit);
    }
    culprit.fence.broken = true;
    culprit.resolve('conflict');
    return group.slice(stored).filter((waiting) => waiting !== culprit);
  }

  /** Of a step that was appended in part the rest is still to come; a transaction is there as a whole. */
  async #remainder(group: readonly Waiting[], culprit: Waiting): Promise<readonly Waiting[]> {
    const entries: LogEntry[] = [];
    if (isPlain(culprit)) {
      for (const entry of culprit.entries) {
        if (!(await this.#patiently(() => isStored(this.#store, entry)))) entries.push(entry);
      }
    }
    if (entries.length > 0) return group.map((waiting) => (waiting === culprit ? { ...culprit, entries } : waiting));
    culprit.resolve('committed');
    return group.filter((waiting) => waiting !== culprit);
  }

  /** A store that is away is waited for; sequence numbers are spent, so giving up is no choice. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (!isHcpError(error) || !error.retryable) throw error;
        this.#closing.signal.throwIfAborted();
        this.#logger.warn({ err: error, attempt }, 'The store does not answer: trying again');
        await delay(this.#clock, backoffMs(attempt, RETRY), this.#closing.signal);
      }
    }
  }
}

function writesOf({ entries, writes = [] }: SessionCommit): Write[] {
  return [...entries.map((entry): Write => ({ insert: 'log', row: logRow(entry) })), ...writes];
}

/** Whether it is nothing but words in the log. */
function isPlain({ writes = [], audit = [] }: SessionCommit): boolean {
  return writes.length === 0 && audit.length === 0;
}

/** Which step of the group a write belongs to; −1 for a record, which belongs to all. */
function owner(group: readonly SessionCommit[], { write }: Conflict): number {
  let before = 0;
  return group.findIndex(({ entries, writes = [] }) => {
    before += entries.length + writes.length;
    return write < before;
  });
}

function split<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}
