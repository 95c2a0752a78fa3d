import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A temporary folder that goes with everything in it. */
export interface DisposableFolder extends Disposable {
  readonly path: string;
}

/** Made when it is first asked for: a run that skips the tests of a file does not run its clean-up either. */
export function disposableFolder(): DisposableFolder {
  let made: string | undefined;
  return {
    get path() {
      made ??= mkdtempSync(join(tmpdir(), 'hcp-store-'));
      return made;
    },
    [Symbol.dispose]() {
      if (made !== undefined) rmSync(made, { recursive: true, force: true });
    },
  };
}
