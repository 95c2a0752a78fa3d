/** Things that have to be closed, the last one first; what `AsyncDisposableStack` is on newer versions of Node. */
export class Resources implements AsyncDisposable {
  readonly #closers: (() => void | PromiseLike<void>)[] = [];

  use<T extends AsyncDisposable>(resource: T): T {
    this.#closers.push(() => resource[Symbol.asyncDispose]());
    return resource;
  }

  defer(work: () => void | Promise<void>): void {
    this.#closers.push(work);
  }

  /** Closes all of them, whatever some of them throw; the first error counts. */
  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
