import type { EventMessage, TaskAccepted, TaskRejected } from '../schemas/types.ts';
import type { Range } from '../session/arrival.ts';
import { type Clock, systemClock } from '../shared/clock.ts';
import type { HcpError } from '../shared/errors.ts';
import { type HarnessId, parseHarnessId } from '../shared/ids.ts';
import { type Logger, silentLogger } from '../shared/logger.ts';
import type { MessageFault, Salvage } from '../shared/messages/fault.ts';
import { type MessageLimits, resolveMessageLimits } from '../shared/messages/limits.ts';
import {
  integerOption,
  LONGEST_TIMER_MS,
  methodsOption,
  refuseUnknownOptions,
  storeOption,
  transportOption,
} from '../shared/option-checks.ts';
import type { Store } from '../shared/store/store.ts';
import type { QueueDeclaration, QueueOptions } from '../shared/transport/topology.ts';
import type { Transport } from '../shared/transport/transport.ts';
import type { EventHandler } from './applier.ts';
import type { PendingApproval } from './approvals.ts';
import type { CalleeMessage } from './event-channel.ts';
import { type Partitions, queuesOf } from './partitions.ts';

/** What a caller may want to know of. All are told after the fact; what they throw is logged. */
export interface CallerListeners {
  /** A range was given up: it did not come in time, and could not be had again. */
  readonly onGap?: (gap: { readonly sessionId: string; readonly range: Range }) => void;
  /** An event that was given up came after all. It is not processed. */
  readonly onLateEvent?: (event: EventMessage) => void;
  /** A handler failed on an event as often as it may: the event is parked. */
  readonly onParked?: (event: EventMessage, error: unknown) => void;
  /** A message of a session this caller does not follow. */
  readonly onOrphan?: (message: CalleeMessage) => void;
  /** An answer that fits no open submit, or more than one. A session that was accepted too late, or twice, is aborted. */
  readonly onUncorrelated?: (message: TaskAccepted | TaskRejected) => void;
  /** A human decides about a task before it is accepted or rejected. Told once for each submit. */
  readonly onApprovalPending?: (pending: PendingApproval) => void;
  /** A message that was refused; it is dead-lettered. */
  readonly onInvalid?: (fault: MessageFault, salvage: Salvage) => void;
  /**
   * Something is not as it should be: `session_stalled`, `abort_timeout`, `submit_timeout`, `callee_unreachable`,
   * `result_missing`, `outputs_unexpected`.
   */
  readonly onTrouble?: (error: HcpError, sessionId: string | undefined) => void;
}

export interface CallerOptions extends CallerListeners {
  /** The caller's name: its event queue is `hcp.evt.{callerId}`. */
  readonly callerId: string;
  readonly transport: Transport;
  readonly store: Store;
  /** Processes every event exactly once: what it writes through `tx` commits with the cursor. Without it use `session.events()`. */
  readonly onEvent?: EventHandler;
  /** How often a handler is tried on one event. @default 5 */
  readonly maxAttempts?: number;
  /** @default 30000 */
  readonly handlerTimeoutMs?: number;
  /** How long later events wait for a missing one. @default 5000 */
  readonly gapHoldMs?: number;
  /** How long a replay may take. @default 30000 */
  readonly replayTimeoutMs?: number;
  /** How far ahead of the cursor an event may be. @default 10000 */
  readonly maxAhead?: number;
  /** How many events may wait behind gaps, in all sessions together; beyond that the oldest gap is given up. @default 100000 */
  readonly maxWaiting?: number;
  /** How long to wait for an answer before a submit is sent again. @default 30000 */
  readonly submitTimeoutMs?: number;
  /** How often a submit is sent. @default 5 */
  readonly submitTries?: number;
  /** How much later than it should something may happen. @default 30000 */
  readonly graceMs?: number;
  /** How long ended sessions and submits are remembered. @default 7 days */
  readonly retentionMs?: number;
  /** Messages in hand at once. @default 100 with `onEvent`, else 10 */
  readonly prefetch?: number;
  readonly queue?: QueueOptions;
  /** Spreads the events over several queues, for several processes. @default one queue */
  readonly partitions?: Partitions;
  readonly limits?: Partial<MessageLimits>;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

export interface CallerSettings {
  readonly callerId: HarnessId;
  readonly transport: Transport;
  readonly store: Store;
  readonly onEvent: EventHandler | undefined;
  readonly listeners: CallerListeners;
  readonly maxAttempts: number;
  readonly handlerTimeoutMs: number;
  readonly gapHoldMs: number;
  readonly replayTimeoutMs: number;
  readonly maxAhead: number;
  readonly maxWaiting: number;
  readonly submitTimeoutMs: number;
  readonly submitTries: number;
  readonly graceMs: number;
  readonly retentionMs: number;
  readonly prefetch: number;
  readonly queue: QueueOptions;
  readonly partitions: Partitions | undefined;
  readonly queues: readonly QueueDeclaration[];
  readonly limits: MessageLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}

const LISTENERS = {
  onGap: 0,
  onLateEvent: 0,
  onParked: 0,
  onOrphan: 0,
  onUncorrelated: 0,
  onApprovalPending: 0,
  onInvalid: 0,
  onTrouble: 0,
} satisfies Record<keyof CallerListeners, 0>;

// As an object, so that the compiler misses none.
const OPTION_NAMES = Object.keys({
  ...LISTENERS,
  callerId: 0,
  transport: 0,
  store: 0,
  onEvent: 0,
  maxAttempts: 0,
  handlerTimeoutMs: 0,
  gapHoldMs: 0,
  replayTimeoutMs: 0,
  maxAhead: 0,
  maxWaiting: 0,
  submitTimeoutMs: 0,
  submitTries: 0,
  graceMs: 0,
  retentionMs: 0,
  prefetch: 0,
  queue: 0,
  partitions: 0,
  limits: 0,
  clock: 0,
  logger: 0,
} satisfies Record<keyof CallerOptions, 0>);

const WEEK_MS = 7 * 86_400_000;

/** Fills in the defaults and refuses what cannot work, one sentence each. Does no I/O. Throws `TypeError`. */
export function resolveCallerOptions(options: CallerOptions): CallerSettings {
  if (typeof options !== 'object' || options === null) throw new TypeError('createCaller needs an options object');
  refuseUnknownOptions(options, OPTION_NAMES);
  const { onEvent } = options;
  for (const name of ['onEvent', ...Object.keys(LISTENERS)] as (keyof CallerOptions)[]) {
    if (options[name] !== undefined && typeof options[name] !== 'function') {
      throw new TypeError(`${name} must be a function`);
    }
  }
  return {
    callerId: parseHarnessId(options.callerId, 'callerId'),
    transport: transportOption(options.transport),
    store: storeOption(options.store),
    onEvent,
    listeners: options,
    maxAttempts: integer(options.maxAttempts, 'maxAttempts', 5, 1000),
    handlerTimeoutMs: integer(options.handlerTimeoutMs, 'handlerTimeoutMs', 30_000),
    gapHoldMs: integer(options.gapHoldMs, 'gapHoldMs', 5000),
    replayTimeoutMs: integer(options.replayTimeoutMs, 'replayTimeoutMs', 30_000),
    maxAhead: integer(options.maxAhead, 'maxAhead', 10_000),
    maxWaiting: integer(options.maxWaiting, 'maxWaiting', 100_000),
    submitTimeoutMs: integer(options.submitTimeoutMs, 'submitTimeoutMs', 30_000),
    submitTries: integer(options.submitTries, 'submitTries', 5, 1000),
    graceMs: integer(options.graceMs, 'graceMs', 30_000),
    retentionMs: integer(options.retentionMs, 'retentionMs', WEEK_MS, Number.MAX_SAFE_INTEGER),
    prefetch: integer(options.prefetch, 'prefetch', onEvent ? 100 : 10, 65_535),
    queue: options.queue ?? {},
    partitions: options.partitions,
    queues: queuesOf(parseHarnessId(options.callerId, 'callerId'), options.partitions, options.queue ?? {}),
    limits: resolveMessageLimits(options.limits),
    clock: methodsOption(options.clock ?? systemClock, 'clock', ['now', 'setTimeout', 'clearTimeout']),
    logger: methodsOption(options.logger ?? silentLogger, 'logger', ['debug', 'info', 'warn', 'error']),
  };
}

function integer(value: unknown, name: string, fallback: number, max = LONGEST_TIMER_MS): number {
  return integerOption(value, name, { fallback, min: 1, max });
}
