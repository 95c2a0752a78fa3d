import {
  MongoError,
  MongoNetworkError,
  MongoServerError,
  MongoServerSelectionError,
  MongoWriteConcernError,
} from 'mongodb';
import { HcpError } from '../../errors.ts';
import { scrubUrls } from '../../logger.ts';

const DUPLICATE_KEY = 11_000;
const TOO_LARGE = new Set([10_334, 17_280, 17_419]);
/** Unauthorized, authentication failed. */
const REFUSED = new Set([13, 18]);

/** Some write of a group met a conflict, and the group does not tell which. Ends in a careful run of the work. */
export class SomeConflict extends Error {}

/** Whether a key or a unique index is taken. */
export function isDuplicate(error: unknown): error is MongoServerError {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
}

/** Whether the transaction is known to have left no trace. */
export function isTransient(error: unknown): error is MongoError {
  return error instanceof MongoError && error.hasErrorLabel('TransientTransactionError');
}

/**
 * Whether a write that was sent may have happened although it failed: the answer was lost, or the server stepped down
 * or gave up waiting for a majority after the write.
 */
export function leavesDoubt(error: unknown): boolean {
  if (!(error instanceof MongoError) || error.hasErrorLabel('NoWritesPerformed')) return false;
  return (
    error instanceof MongoNetworkError ||
    error instanceof MongoServerSelectionError ||
    error instanceof MongoWriteConcernError ||
    hasWriteConcernError(error) ||
    error.hasErrorLabel('RetryableWriteError')
  );
}

function hasWriteConcernError(error: MongoError): boolean {
  if (!('result' in error) || typeof error.result !== 'object' || error.result === null) return false;
  const { result } = error;
  return 'getWriteConcernError' in result && typeof result.getWriteConcernError === 'function'
    ? result.getWriteConcernError() !== undefined
    : false;
}

export function outcomeUnknown(cause: unknown): HcpError {
  return new HcpError('store_outcome_unknown', 'MongoDB did not say whether the write happened', { cause });
}

/** The `HcpError` for what the driver threw; anything else as it is. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof SomeConflict) return new HcpError('store_conflict', 'A write of the transaction met a conflict');
  if (error instanceof RangeError) return tooLarge(error);
  if (!(error instanceof MongoError)) return error;
  if (typeof error.code === 'number' && TOO_LARGE.has(error.code)) return tooLarge(error);
  if (typeof error.code === 'number' && REFUSED.has(error.code)) {
    return new HcpError('store_unsupported', `MongoDB refused the user: ${scrubUrls(error.message)}`, { cause: error });
  }
  return new HcpError('store_unavailable', `MongoDB failed: ${scrubUrls(error.message)}`, { cause: error });
}

function tooLarge(cause: unknown): HcpError {
  return new HcpError('store_record_too_large', 'MongoDB refused a row for its size', { cause });
}
