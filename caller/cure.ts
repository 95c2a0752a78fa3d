import type { TaskRejected } from '../schemas/types.ts';
import { applyPatch, isSafePointer, type PatchOperation } from '../shared/json-patch.ts';
import type { Task } from './submissions.ts';

/** Who asks, and for what, is not for a callee to say. */
const UNTOUCHABLE: readonly unknown[] = ['caller_id', 'capability'];
const MAX_OPERATIONS = 100;

/** What a rejection proposes (`cure/1`); `undefined` unless all of it is well-formed. */
export function cureOf({ payload: { extensions } }: TaskRejected): readonly PatchOperation[] | undefined {
  const proposal = extensions?.['cure/1'];
  if (!isObject(proposal) || !Array.isArray(proposal.patch)) return undefined;
  const { patch } = proposal;
  return patch.length > 0 && patch.length <= MAX_OPERATIONS && patch.every(isAllowed) ? patch : undefined;
}

/**
 * The task as a rejection proposes it; the given one stays as it is. Look at the cure before you submit the result: it is
 * the callee's wish. Throws `TypeError` for a path that does not exist, and for a change of the capability or the caller.
 */
export function applyCure(task: Task, cure: readonly PatchOperation[]): Task {
  for (const operation of cure) {
    if (!isAllowed(operation)) throw new TypeError(`A cure may not do this: ${JSON.stringify(operation)}`);
  }
  // A task was changed in its parts only; whether it is still one is checked when it is submitted.
  return structuredClone(applyPatch(task, cure)) as Task;
}

function isAllowed(operation: unknown): operation is PatchOperation {
  if (!isObject(operation)) return false;
  const { op, path } = operation;
  const isKnown = op === 'remove' || ((op === 'add' || op === 'replace') && Object.hasOwn(operation, 'value'));
  return isKnown && typeof path === 'string' && path !== '' && isSafePointer(path) && !isUntouchable(path);
}

function isUntouchable(path: string): boolean {
  return UNTOUCHABLE.includes(path.split('/')[1]);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
