import type { TransportHarness } from '../../testing/transport-contract/index.ts';

/** An adapter in the list of the contract test. */
export interface TransportFixture {
  readonly adapter: string;
  /** Why it cannot run on this machine, if so. */
  readonly unavailable?: string | undefined;
  /** Cases it cannot keep, by name, with the reason. Each is run and must fail, so that none stays here needlessly. */
  readonly cannotKeep?: Readonly<Record<string, string>>;
  /** Starts what the harness needs; disposing it stops and removes everything again. */
  start(): Promise<TransportHarness & AsyncDisposable>;
}
