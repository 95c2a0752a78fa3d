/** Lets one task at a time through, in the order they came. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.then(ignore, ignore);
    return result;
  }
}

function ignore(): void {}
