import type { ExecutionSummary, WarningData } from '../schemas/types.ts';
import { readLog } from '../session/log.ts';
import type { SessionRecord } from '../session/record.ts';
import { formatDuration } from '../shared/durations.ts';
import type { Host } from './host.ts';
import { SOFT_LIMIT } from './sayings.ts';
import type { Saying } from './session-writer.ts';

interface Counts {
  checkpoints: number;
  readonly warnings: string[];
  /** What went beyond a limit. */
  readonly risks: string[];
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
    this.#counts = isRecovered ? undefined : noCounts();
  }

  count(saying: Saying): void {
    if (this.#counts === undefined || !('event' in saying)) return;
    if (saying.event === 'checkpoint_created') this.#counts.checkpoints++;
    if (saying.event === 'warning') countWarning(this.#counts, saying.data);
  }

  /** Waiting for the decision is no part of the execution. */
  async summary({ runningSince, createdAt }: SessionRecord): Promise<ExecutionSummary> {
    this.#counts ??= await this.#countLog();
    const { checkpoints, warnings, risks } = this.#counts;
    const durationMs = Math.max(1, this.#host.clock.now() - (runningSince ?? createdAt));
    return {
      duration: formatDuration(durationMs),
      checkpoints_created: checkpoints,
      warnings,
      ...(risks.length > 0 && { risk_events: risks }),
    };
  }

  async #countLog(): Promise<Counts> {
    const counts = noCounts();
    for await (const { kind, body } of readLog(this.#host.store, this.#session.sessionId)) {
      if (kind === 'checkpoint_created') counts.checkpoints++;
      if (kind === 'warning') countWarning(counts, JSON.parse(String(body)).payload.data);
    }
    return counts;
  }
}

function noCounts(): Counts {
  return { checkpoints: 0, warnings: [], risks: [] };
}

function countWarning({ warnings, risks }: Counts, { code, message }: WarningData): void {
  warnings.push(code);
  if (code === SOFT_LIMIT) risks.push(message);
}
