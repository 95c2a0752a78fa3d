import type { KeyRing } from '../session/keys/key-ring.ts';
import { type Clock, systemClock } from '../shared/clock.ts';
import { parseDuration } from '../shared/durations.ts';
import { type HarnessId, newUlid, parseHarnessId } from '../shared/ids.ts';
import { type Logger, silentLogger } from '../shared/logger.ts';
import { type MessageLimits, resolveMessageLimits } from '../shared/messages/limits.ts';
import {
  choiceOption,
  integerOption,
  LONGEST_TIMER_MS,
  methodsOption,
  refuseUnknownOptions,
  storeOption,
  transportOption,
} from '../shared/option-checks.ts';
import type { Store } from '../shared/store/store.ts';
import type { QueueOptions } from '../shared/transport/topology.ts';
import type { Transport } from '../shared/transport/transport.ts';
import { parseBaseUrl } from './artifacts/base-url.ts';
import { type Policy, type ResolvedPolicy, resolvePolicy } from './gate/policy.ts';

export interface ArtifactOptions {
  /** Addresses begin with this, as `https://lab.example/artifacts`. */
  readonly baseUrl: string;
  /** How long an address is good for, as an ISO 8601 duration. @default 'PT5M' */
  readonly urlLifetime?: string;
}

export interface CalleeOptions {
  /** The callee's name: its command queue is `hcp.cmd.{calleeId}`. */
  readonly calleeId: string;
  readonly transport: Transport;
  readonly store: Store;
  /** Who may have what done. @default nobody, nothing */
  readonly policy?: Policy;
  /** What tokens, artifact addresses and evidence are signed with. @default a key of its own, kept in the store */
  readonly keys?: KeyRing;
  /** How long a human may take to decide about a task. @default 'P1D' */
  readonly approvalTimeout?: string;
  /** Where artifacts are served ({@link createArtifactHandler}). @default `hcp.artifact` is not offered */
  readonly artifacts?: ArtifactOptions;
  /**
   * Names this process among the instances of the callee. A process that comes back under the same name continues its
   * sessions at once; otherwise they wait until the lease of the dead one has run out. @default a new name each time
   */
  readonly instanceId?: string;
  /** An instance that is not heard of for this long has lost its sessions. @default 10000 */
  readonly leaseMs?: number;
  /** Longest run of a task that asks for nothing else, as an ISO 8601 duration. @default 'PT4H' */
  readonly maxDuration?: string;
  /** How long cleaning up after an abort may take. @default 'PT5M' */
  readonly abortTimeout?: string;
  /** How long a session token is good for, if less than the task may run. @default as long as the task may run */
  readonly tokenLifetime?: string;
  /** A session that says nothing for this long is idle. @default no such limit */
  readonly idleTimeout?: string;
  /** An idle session fails, or is paused and fails after {@link idleGrace}. @default 'fail' */
  readonly onIdle?: 'fail' | 'suspend';
  /** @default 'PT5M' */
  readonly idleGrace?: string;
  /** How long everything about a session is kept after its end; at least a day. @default 'P7D' */
  readonly retention?: string;
  /** How long the gate may think. @default 30000 */
  readonly gateTimeoutMs?: number;
  /** Must an `abort` carry the session's token, and a question of an extension likewise? @default 'optional' */
  readonly abortToken?: 'optional' | 'required';
  /** Largest data of one checkpoint. @default 8388608 */
  readonly maxCheckpointBytes?: number;
  /** How many checkpoints of a session are kept. @default 5 */
  readonly keptCheckpoints?: number;
  /** This many unpublished messages make tasks wait for the broker. @default 10000 */
  readonly maxBacklog?: number;
  /** Commands in hand at once. @default 10 */
  readonly prefetch?: number;
  /** How the callee's own queue is declared. */
  readonly queue?: QueueOptions;
  readonly limits?: Partial<MessageLimits>;
  /** How long `close` waits for running tasks and for the broker. @default 10000 */
  readonly closeTimeoutMs?: number;
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** @default logs nothing */
  readonly logger?: Logger;
}

export interface CalleeSettings {
  readonly calleeId: HarnessId;
  readonly transport: Transport;
  readonly store: Store;
  readonly policy: ResolvedPolicy;
  readonly keys: KeyRing | undefined;
  readonly approvalTimeoutMs: number;
  readonly artifacts: { readonly baseUrl: string; readonly lifetimeMs: number } | undefined;
  readonly instanceId: string;
  readonly leaseMs: number;
  readonly maxDurationMs: number;
  readonly abortTimeoutMs: number;
  readonly tokenLifetimeMs: number;
  readonly idleTimeoutMs: number | undefined;
  readonly onIdle: 'fail' | 'suspend';
  readonly idleGraceMs: number;
  readonly retentionMs: number;
  readonly gateTimeoutMs: number;
  readonly abortToken: 'optional' | 'required';
  readonly maxCheckpointBytes: number;
  readonly keptCheckpoints: number;
  readonly maxBacklog: number;
  readonly prefetch: number;
  readonly queue: QueueOptions;
  readonly limits: MessageLimits;
  readonly closeTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

// As an object, so that the compiler misses none.
const OPTION_NAMES = Object.keys({
  calleeId: 0,
  transport: 0,
  store: 0,
  policy: 0,
  keys: 0,
  approvalTimeout: 0,
  artifacts: 0,
  instanceId: 0,
  leaseMs: 0,
  maxDuration: 0,
  abortTimeout: 0,
  tokenLifetime: 0,
  idleTimeout: 0,
  onIdle: 0,
  idleGrace: 0,
  retention: 0,
  gateTimeoutMs: 0,
  abortToken: 0,
  maxCheckpointBytes: 0,
  keptCheckpoints: 0,
  maxBacklog: 0,
  prefetch: 0,
  queue: 0,
  limits: 0,
  closeTimeoutMs: 0,
  clock: 0,
  logger: 0,
} satisfies Record<keyof CalleeOptions, 0>);

const ARTIFACT_NAMES = Object.keys({ baseUrl: 0, urlLifetime: 0 } satisfies Record<keyof ArtifactOptions, 0>);

const DAY_MS = 86_400_000;
const LARGEST_CHECKPOINT = 14 * 1024 * 1024;

/** Fills in the defaults and refuses what cannot work, one sentence each. Does no I/O. Throws `TypeError`. */
export function resolveCalleeOptions(options: CalleeOptions): CalleeSettings {
  if (typeof options !== 'object' || options === null) throw new TypeError('createCallee needs an options object');
  refuseUnknownOptions(options, OPTION_NAMES);
  const clock = methodsOption(options.clock ?? systemClock, 'clock', ['now', 'setTimeout', 'clearTimeout']);
  const transport = transportOption(options.transport);
  const maxDurationMs = duration(options.maxDuration, 'maxDuration', 'PT4H');
  const retentionMs = duration(options.retention, 'retention', 'P7D');
  if (retentionMs < DAY_MS)
    throw new TypeError('retention must be at least P1D: a repeated submit must find its answer');
  return {
    calleeId: parseHarnessId(options.calleeId, 'calleeId'),
    transport,
    store: storeOption(options.store),
    policy: resolvePolicy(options.policy, transport.link),
    keys: options.keys && methodsOption(options.keys, 'keys', ['sign', 'verify', 'publicKeys']),
    approvalTimeoutMs: duration(options.approvalTimeout, 'approvalTimeout', 'P1D'),
    artifacts: options.artifacts === undefined ? undefined : artifactSettings(options.artifacts),
    instanceId: parseHarnessId(options.instanceId ?? newUlid(clock.now()), 'instanceId'),
    leaseMs: integerOption(options.leaseMs, 'leaseMs', { fallback: 10_000, min: 100, max: LONGEST_TIMER_MS }),
    maxDurationMs,
    abortTimeoutMs: duration(options.abortTimeout, 'abortTimeout', 'PT5M'),
    tokenLifetimeMs:
      options.tokenLifetime === undefined
        ? Number.POSITIVE_INFINITY
        : duration(options.tokenLifetime, 'tokenLifetime', 'PT1H'),
    idleTimeoutMs: options.idleTimeout === undefined ? undefined : duration(options.idleTimeout, 'idleTimeout', 'PT1H'),
    onIdle: choiceOption(options.onIdle, 'onIdle', ['fail', 'suspend']),
    idleGraceMs: duration(options.idleGrace, 'idleGrace', 'PT5M'),
    retentionMs,
    gateTimeoutMs: integer(options.gateTimeoutMs, 'gateTimeoutMs', 30_000, LONGEST_TIMER_MS),
    abortToken: choiceOption(options.abortToken, 'abortToken', ['optional', 'required']),
    maxCheckpointBytes: integer(options.maxCheckpointBytes, 'maxCheckpointBytes', 8 * 1024 * 1024, LARGEST_CHECKPOINT),
    keptCheckpoints: integer(options.keptCheckpoints, 'keptCheckpoints', 5, 1000),
    maxBacklog: integer(options.maxBacklog, 'maxBacklog', 10_000, 1_000_000),
    prefetch: integer(options.prefetch, 'prefetch', 10, 65_535),
    queue: options.queue ?? {},
    limits: resolveMessageLimits(options.limits),
    closeTimeoutMs: integer(options.closeTimeoutMs, 'closeTimeoutMs', 10_000, LONGEST_TIMER_MS),
    clock,
    logger: methodsOption(options.logger ?? silentLogger, 'logger', ['debug', 'info', 'warn', 'error']),
  };
}

function integer(value: unknown, name: string, fallback: number, max: number): number {
  return integerOption(value, name, { fallback, min: 1, max });
}

function duration(value: unknown, name: string, fallback: string): number {
  const ms = typeof (value ?? fallback) === 'string' ? parseDuration(String(value ?? fallback)) : undefined;
  if (ms === undefined) throw new TypeError(`${name} must be an ISO 8601 duration above zero, as ${fallback}`);
  return ms;
}

function artifactSettings(artifacts: ArtifactOptions): { baseUrl: string; lifetimeMs: number } {
  if (typeof artifacts !== 'object' || artifacts === null) {
    throw new TypeError('artifacts must be an object with the baseUrl they are served under');
  }
  refuseUnknownOptions(artifacts, ARTIFACT_NAMES, 'artifacts.');
  return {
    baseUrl: parseBaseUrl(artifacts.baseUrl, 'artifacts.baseUrl'),
    lifetimeMs: duration(artifacts.urlLifetime, 'artifacts.urlLifetime', 'PT5M'),
  };
}
