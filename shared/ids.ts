import { randomFillSync, randomUUID } from 'node:crypto';
import { monotonicFactory } from 'ulid';

type Brand<Base, Name extends string> = Base & { readonly __brand: Name };

/** A `caller_id` or `callee_id`: safe in a queue name, a routing key, a file name and a permission pattern. */
export type HarnessId = Brand<string, 'HarnessId'>;
export type SessionId = Brand<string, 'SessionId'>;
export type MessageId = Brand<string, 'MessageId'>;

/** No dot: with one, caller `a`'s binding `a.#` would match the events of caller `a.b` (D-04). */
const HARNESS_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

export function isHarnessId(value: unknown): value is HarnessId {
  return typeof value === 'string' && HARNESS_ID.test(value);
}

export function isUuidV4(value: unknown): value is string {
  return typeof value === 'string' && UUID_V4.test(value);
}

/** Checks an id given by the program (HCP-013). Throws `TypeError`, naming the option. */
export function parseHarnessId(value: unknown, option: string): HarnessId {
  if (isHarnessId(value)) return value;
  throw new TypeError(
    `${option} must be 1 to 64 letters, digits, "_" or "-", starting with a letter or digit, but is ${describe(value)}`,
  );
}

/** Checks a session id given by the program. Lower case is the canonical form (D-31). Throws `TypeError`. */
export function parseSessionId(value: unknown): SessionId {
  if (isUuidV4(value)) return value.toLowerCase() as SessionId;
  throw new TypeError(`sessionId must be a UUID v4, but is ${describe(value)}`);
}

export function newSessionId(): SessionId {
  return randomUUID() as SessionId;
}

export function newMessageId(): MessageId {
  return randomUUID() as MessageId;
}

const POOL = new Uint32Array(1024);
let drawn = POOL.length;

/** Draws from a pool: asking the system for each of a ULID's sixteen characters would cost fifty times as much. */
function random(): number {
  if (drawn === POOL.length) {
    randomFillSync(POOL);
    drawn = 0;
  }
  return (POOL[drawn++] ?? 0) / 2 ** 32;
}

const nextUlid = monotonicFactory(random);

/** An id of our own (checkpoints, instances): sorts by time, and in one process by order of making. */
export function newUlid(now: number): string {
  return nextUlid(now);
}

function describe(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : value === null ? 'null' : typeof value;
}
