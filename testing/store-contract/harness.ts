import type { Store } from '../../shared/store/store.ts';
import type { Tables } from '../../shared/store/tables.ts';

/** What the contract needs of a store under test. */
export interface StoreHarness {
  readonly adapter: string;
  /** Opens one more store on the same data. The first call of a case may find data of earlier cases: keys are unique. */
  open(tables: Tables): Promise<Store>;
  /**
   * Makes the next commit, append or transaction happen while its acknowledgement never reaches `store`.
   * `undefined` where no acknowledgement can be lost (the data lives and dies with the process).
   */
  readonly loseNextAcknowledgement: ((store: Store) => Promise<void>) | undefined;
  /**
   * Starts another operating-system process on the same data, which calls {@link runOtherProcessProgram}; resolves when
   * it has ended well. `undefined` where the data is not shared between processes.
   */
  readonly inOtherProcess: ((program: OtherProcessProgram) => Promise<void>) | undefined;
}

/** What another process is asked to do: `times` conditional increments of one counter row, retrying on conflict. */
export interface OtherProcessProgram {
  readonly tables: Tables;
  readonly increment: {
    readonly table: string;
    readonly key: readonly string[];
    readonly column: string;
    readonly times: number;
  };
}

/** Performs `program`; also the contract's own way to count. */
export async function runOtherProcessProgram(store: Store, { increment }: OtherProcessProgram): Promise<void> {
  const { table, key, column, times } = increment;
  for (let done = 0; done < times; ) {
    const row = await store.get(table, key);
    const value = row?.[column];
    if (typeof value !== 'number') throw new TypeError(`${table}.${column} is not a number`);
    const answer = await store.commit([{ patch: table, key, set: { [column]: value + 1 }, if: { [column]: value } }]);
    if (answer === 'committed') done++;
  }
}
