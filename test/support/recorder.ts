import type { Logger } from '../../shared/logger.ts';
import { ManualClock } from '../../testing/manual-clock.ts';

/** Things that come by themselves: kept in order, and awaited without looking at the time. */
export class Recorder<T> {
  readonly all: T[] = [];
  #wake = Promise.withResolvers<void>();

  readonly add = (item: T): void => {
    this.all.push(item);
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  };

  /** Resolves when `condition` holds for what has come so far. */
  async until(condition: (all: readonly T[]) => boolean): Promise<readonly T[]> {
    while (!condition(this.all)) await this.#wake.promise;
    return this.all;
  }

  async count(count: number): Promise<readonly T[]> {
    return this.until((all) => all.length >= count);
  }
}

/** A manual clock that tells which delays were asked for. */
export class RecordingClock extends ManualClock {
  readonly delays = new Recorder<number>();

  override setTimeout(callback: () => void, delayMs: number): number {
    const timer = super.setTimeout(callback, delayMs);
    this.delays.add(delayMs);
    return timer;
  }

  /** Waits until this delay was asked for so many times, ever. */
  async asked(delayMs: number, times = 1): Promise<void> {
    await this.delays.until((all) => all.filter((delay) => delay === delayMs).length >= times);
  }
}

/** A logger whose lines are kept as one JSON text each. */
export function recordingLogger(): { readonly logger: Logger; readonly lines: Recorder<string> } {
  const lines = new Recorder<string>();
  const write = (level: string) => (fields: object, message: string) => {
    const text = JSON.stringify({ ...fields, level, message }, (_, value) =>
      value instanceof Error ? { code: 'code' in value ? value.code : undefined, message: value.message } : value,
    );
    lines.add(text);
  };
  const logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  return { logger, lines };
}
