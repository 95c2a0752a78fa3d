import type { Transport } from '../../shared/transport/transport.ts';

/** Undoes a fault. */
export type Heal = () => Promise<void>;

/** How to break the links to one broker, and the broker itself, from outside. Each adapter says what that means for it. */
export interface TransportFaults {
  /** Every link is gone at once, as by a TCP reset. New ones are possible immediately. */
  cutLinks(): Promise<void>;
  /** Links stay up but carry nothing until healed: half-open. */
  freezeLinks(): Promise<Heal>;
  /** Everything takes much longer until healed; nothing is lost. */
  slowLinks(): Promise<Heal>;
  /** The broker is stopped, without warning; healing starts it again with what it had confirmed. */
  stopBroker(): Promise<Heal>;
  /** Deletes a queue and what is in it, behind everybody's back. */
  deleteQueue(name: string): Promise<void>;
}

/** What the contract needs of an adapter under test. */
export interface TransportHarness {
  readonly adapter: string;
  /** Opens one more transport to the same broker. `window`: how many publishes may be unconfirmed. */
  open(options?: { readonly login?: string; readonly window?: number }): Promise<Transport>;
  /** A login `open` accepts beside the default one. */
  readonly otherLogin: string;
  readonly faults: TransportFaults;
}
