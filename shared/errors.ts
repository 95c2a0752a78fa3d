/**
 * Every code an {@link HcpError} can carry, with whether trying again can help.
 * `docs/errors.md` explains each one; a test compares the two.
 */
const RETRYABLE = {
  message_invalid: false,
  message_too_large: false,
  schema_refused: false,
  schema_overrun: false,
  transport_unreachable: true,
  transport_lost: true,
  transport_closed: false,
  publish_refused: true,
  queue_deleted: true,
  topology_mismatch: false,
  topology_missing: false,
  topology_forbidden: false,
  topology_unsupported: false,
  store_unsupported: false,
  store_unavailable: true,
  store_outcome_unknown: true,
  store_conflict: true,
  store_value_invalid: false,
  store_record_too_large: false,
  store_closed: false,
  session_illegal_transition: false,
  session_unknown: false,
  session_closed: false,
  session_taken_over: false,
  session_handed_over: false,
  checkpoint_too_large: false,
  safety_violation: false,
  approval_not_open: false,
  token_invalid: false,
  callee_closed: false,
  caller_closed: false,
  callee_unreachable: true,
  submit_timeout: true,
  abort_timeout: false,
  result_missing: false,
  session_stalled: false,
  outputs_unexpected: false,
} as const;

export type HcpErrorCode = keyof typeof RETRYABLE;

/** All codes, in the order of the table. */
export const HCP_ERROR_CODES = Object.keys(RETRYABLE) as readonly HcpErrorCode[];

export interface HcpErrorOptions {
  readonly cause?: unknown;
  /** A finer word of the code's own vocabulary, e.g. which argument of a queue differs. */
  readonly reason?: string;
  readonly retryable?: boolean;
}

const BRAND = Symbol.for('hcp-sdk.HcpError');

/**
 * What this SDK throws when something outside the program went wrong. Tell errors apart by `code`, with
 * {@link isHcpError}: two copies of the package in one program make `instanceof` lie. A mistake in a call is a
 * `TypeError` instead, thrown before any I/O.
 */
export class HcpError<Code extends HcpErrorCode = HcpErrorCode> extends Error {
  override readonly name = 'HcpError';
  readonly code: Code;
  readonly retryable: boolean;
  readonly reason: string | undefined;

  constructor(code: Code, message: string, options: HcpErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? RETRYABLE[code];
    this.reason = options.reason;
    Object.defineProperty(this, BRAND, { value: true });
  }
}

/** Whether `error` is an {@link HcpError}, of the given code if one is named. */
export function isHcpError<Code extends HcpErrorCode = HcpErrorCode>(
  error: unknown,
  code?: Code,
): error is HcpError<Code> {
  return (
    typeof error === 'object' &&
    error !== null &&
    BRAND in error &&
    (code === undefined || (error as { code?: unknown }).code === code)
  );
}
