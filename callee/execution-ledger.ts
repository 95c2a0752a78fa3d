import { readLog } from '../session/log.ts';
import type { SessionRecord } from '../session/record.ts';
import { formatDuration } from '../shared/durations.ts';
import type { Host } from './host.ts';
import type { Saying } from './session-writer.ts';

interface Counts {
  checkpoints: number;
  readonly warnings: string[];
}

/** What goes into the `execution_summary` of a result (HCP-132). */
export class ExecutionLedger {
  readonly #host: Host;
  readonly #session: SessionRecord;
  /** `undefined` after a restart: what earlier lives did is counted from the log, once, at the end. */
  #counts: Counts | undefined;

  constructor(host: Host, session: SessionRecord, isRecovered: boolean) {
    this.#host = host;
    this.#session = session;
    this.#counts = isRecovered ? undefined : { checkpoints: 0, warnings: [] };
  }

  count(saying: Saying): void {
    if (this.#counts === undefined || !('event' in saying)) return;
    if (saying.event === 'checkpoint_created') this.#counts.checkpoints++;
    if (saying.event === 'warning') this.#counts.warnings.push(saying.data.code);
  }

  async summary(): Promise<{ duration: string; checkpoints_created: number; warnings: string[] }> {
    this.#counts ??= await this.#countLog();
    const { checkpoints, warnings } = this.#counts;
    const durationMs = Math.max(1, this.#host.clock.now() - this.#session.createdAt);
    return { duration: formatDuration(durationMs), checkpoints_created: checkpoints, warnings };
  }

  async #countLog(): Promise<Counts> {
    const counts: Counts = { checkpoints: 0, warnings: [] };
    for await (const { kind, body } of readLog(this.#host.store, this.#session.sessionId)) {
      if (kind === 'checkpoint_created') counts.checkpoints++;
      if (kind === 'warning') counts.warnings.push(JSON.parse(String(body)).payload.data.code);
    }
    return counts;
  }
}
