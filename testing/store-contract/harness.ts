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
   * Starts another operating-system process on the same data which performs `program` and answers with its result.
   * `undefined` where the data is not shared between processes.
   */
  readonly inOtherProcess: ((program: OtherProcessProgram) => Promise<unknown>) | undefined;
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
