import type { HcpError } from '../../errors.ts';
import { outcomeUnknown } from './errors.ts';

/**
 * Keeps the promise of `store_outcome_unknown`, that a look tells. A write whose answer was lost may be on the primary
 * while no majority has it yet, and a majority read would not see it: before the next call goes out, `barrier` (a write
 * that a majority confirms) puts everything earlier behind it.
 */
export class Doubt {
  readonly #barrier: () => Promise<unknown>;
  #raised = 0;
  #settled = 0;

  constructor(barrier: () => Promise<unknown>) {
    this.#barrier = barrier;
  }

  /** The error to throw for an outcome that is not known. */
  raise(cause: unknown): HcpError {
    this.#raised++;
    return outcomeUnknown(cause);
  }

  async settle(): Promise<void> {
    const raised = this.#raised;
    if (this.#settled >= raised) return;
    await this.#barrier();
    this.#settled = Math.max(this.#settled, raised);
  }
}
