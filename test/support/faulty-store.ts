import { HcpError } from '../../shared/errors.ts';
import type { Conflict, Row, Store } from '../../shared/store/store.ts';
import { Recorder } from './recorder.ts';

/** One call that wrote, by what it carried. */
export interface StoreCall {
  readonly method: 'commit' | 'append';
  readonly size: number;
}

type Work = () => Promise<'committed' | 'appended' | Conflict>;

/** What happens to the next writing call instead of the plain thing. It decides whether, and when, the call is made. */
export type Fault = (work: Work, call: { readonly rows: readonly Row[] }) => ReturnType<Work>;

/** A real store whose writing calls are counted, held up or spoilt, one fault per call, in order. */
export class FaultyStore {
  /** Those that are over, however they ended. */
  readonly calls = new Recorder<StoreCall>();
  readonly faults: Fault[] = [];
  readonly store: Store;
  readonly #inner: Store;

  constructor(inner: Store) {
    this.#inner = inner;
    this.store = {
      ...inner,
      commit: (writes) => this.#through('commit', writes.length, () => inner.commit(writes), []) as never,
      append: (table, rows) => this.#through('append', rows.length, () => inner.append(table, rows), rows) as never,
    };
  }

  /** The next call does not reach the store before `release` is called. */
  hold(): { readonly reached: Promise<void>; readonly release: () => void } {
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    this.faults.push(async (work) => {
      reached.resolve();
      await gate.promise;
      return work();
    });
    return { reached: reached.promise, release: gate.resolve };
  }

  /** The next call is done, but nobody hears of it. */
  loseAnswer(code: 'store_outcome_unknown' | 'store_unavailable' = 'store_outcome_unknown'): void {
    this.faults.push(async (work) => {
      await work();
      throw new HcpError(code, 'The answer was lost');
    });
  }

  /** The next append stores so many rows and then loses the link. */
  breakOffAfter(count: number): void {
    this.faults.push(async (_, { rows }) => {
      await this.#inner.append('log', rows.slice(0, count));
      throw new HcpError('store_unavailable', 'The link broke in the middle');
    });
  }

  /** The next call does not reach the store. */
  beAway(times = 1): void {
    for (let i = 0; i < times; i++) this.faults.push(async () => unreachable());
  }

  async #through(method: StoreCall['method'], size: number, work: Work, rows: readonly Row[]) {
    const fault = this.faults.shift();
    try {
      return await (fault === undefined ? work() : fault(work, { rows }));
    } finally {
      this.calls.add({ method, size });
    }
  }
}

function unreachable(): never {
  throw new HcpError('store_unavailable', 'The store is away');
}
