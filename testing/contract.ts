/**
 * One proof of a contract, free of any test runner: register each case with the one you use,
 * e.g. `for (const c of transportContract(harness)) it(c.name, c.run, c.timeLimitMs)`.
 */
export interface ContractCase {
  /** What is promised, as a sentence. */
  readonly name: string;
  /** Ids of the requirements this case proves. */
  readonly verifies: readonly string[];
  /** How long it may take on a slow machine; never a measure of speed. */
  readonly timeLimitMs: number;
  run(): Promise<void>;
}
