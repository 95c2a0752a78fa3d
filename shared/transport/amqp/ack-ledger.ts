/** Which deliveries of one channel are unsettled, and how to acknowledge the done ones in as few frames as order allows. */
export class AckLedger {
  /** Unsettled at the broker, in delivery order; `true` when it is done and the broker has not been told. */
  readonly #open = new Map<number, boolean>();
  #done: number[] = [];

  delivered(tag: number): void {
    this.#open.set(tag, false);
  }

  /** Settled one by one, at once. */
  forget(tag: number): void {
    this.#open.delete(tag);
  }

  /** Answers whether this is the first one since the last {@link flush}. */
  ack(tag: number): boolean {
    this.#open.set(tag, true);
    return this.#done.push(tag) === 1;
  }

  /**
   * What to tell the broker: everything up to `upTo` at once, then `single` ones, which wait behind a delivery that is
   * still in hand and may not be acknowledged with them.
   */
  flush(): { upTo: number | undefined; single: number[] } {
    let upTo: number | undefined;
    for (const [tag, done] of this.#open) {
      if (!done) break;
      upTo = tag;
      this.#open.delete(tag);
    }
    const single = this.#done.filter((tag) => this.#open.delete(tag));
    this.#done = [];
    return { upTo, single };
  }
}
