import { integerOption, LONGEST_TIMER_MS, refuseUnknownOptions } from '../../option-checks.ts';
import type { Synchronous } from '../../store/sqlite/database.ts';
import { EMBEDDED_OPTION_NAMES, type EmbeddedOptions, resolveEmbeddedOptions } from '../embedded/options.ts';
import { EmbeddedTransport } from '../embedded/transport.ts';
import type { Transport } from '../transport.ts';
import { SqliteBroker } from './sqlite-broker.ts';

export interface SqliteTransportOptions extends EmbeddedOptions {
  /** The queue file; made if it is missing. It may hold the SQLite store too. */
  readonly path: string;
  /** `NORMAL` is faster and may lose the last messages in a power cut, never in a crash of the program. @default 'FULL' */
  readonly synchronous?: Synchronous;
  /** What a process that died had in hand comes back after this. @default 5000 */
  readonly leaseMs?: number;
  /** How often to look for what other processes did. @default 10 */
  readonly pollMs?: number;
  /** A file that stays locked for this long counts as lost, until it answers again. @default leaseMs */
  readonly patienceMs?: number;
}

/**
 * Connects to the queues in a file, shared by the processes of one machine: no server.
 * Rejects with `transport_unreachable` when the file cannot hold queues.
 */
export async function connectSqlite(options: SqliteTransportOptions): Promise<Transport> {
  const { path, synchronous = 'FULL', leaseMs, pollMs, patienceMs, ...rest } = options;
  refuseUnknownOptions(rest, EMBEDDED_OPTION_NAMES);
  if (typeof path !== 'string' || path === '' || path === ':memory:') {
    throw new TypeError('path must name a file: use connectMemory for none');
  }
  const resolved = resolveEmbeddedOptions(rest);
  const lease = milliseconds(leaseMs, 'leaseMs', 5000);
  const broker = await SqliteBroker.open({
    path,
    synchronous,
    leaseMs: lease,
    pollMs: milliseconds(pollMs, 'pollMs', 10),
    patienceMs: milliseconds(patienceMs, 'patienceMs', lease),
    clock: resolved.clock,
  });
  return new EmbeddedTransport(broker, resolved).open();
}

function milliseconds(value: unknown, name: string, fallback: number): number {
  return integerOption(value, name, { fallback, min: 1, max: LONGEST_TIMER_MS });
}
