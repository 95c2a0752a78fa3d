type Work = () => void | Promise<void>;

/** What is to be done when the work of a session ends badly. */
export class Cleanups {
  #works: Work[] = [];

  add(work: Work): void {
    this.#works.push(work);
  }

  /** The last one given first, then `last`. One that throws keeps no other from running; all are told. */
  async run(last: Work): Promise<void> {
    const works = [...this.#works.reverse(), last];
    this.#works = [];
    const errors: unknown[] = [];
    for (const work of works) {
      try {
        await work();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, messagesOf(errors));
  }
}

function messagesOf(errors: readonly unknown[]): string {
  return errors.map((error) => (error instanceof Error ? error.message : String(error))).join('; ');
}
