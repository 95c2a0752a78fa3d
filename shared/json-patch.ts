import { pointerStep } from './messages/fault.ts';

/** One step of a JSON Patch: the part of RFC 6902 that changes a value in place, without `move`, `copy` and `test`. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

const OPERATIONS: readonly string[] = ['add', 'replace', 'remove'];
/** Keys by which a patch from outside could reach into a prototype. */
const UNSAFE = new Set(['__proto__', 'constructor', 'prototype']);
const INDEX = /^(0|[1-9]\d{0,9})$/;

/**
 * The value with the operations applied one after the other. The value given stays as it is; what no operation touches
 * is shared with it. Throws `TypeError` naming the path that does not exist or is never allowed.
 */
export function applyPatch(value: unknown, operations: readonly PatchOperation[]): unknown {
  return operations.reduce((whole, operation) => {
    const { op, path } = operation;
    if (!OPERATIONS.includes(op)) throw new TypeError(`The operation ${op} at ${path} is not known`);
    if (!isSafePointer(path)) throw new TypeError(`The path ${path} is not allowed in a patch`);
    return edit(whole, stepsOf(path), 0, operation);
  }, value);
}

/** The JSON pointer (RFC 6901) made of these steps. */
export function pointer(steps: readonly (string | number)[]): string {
  return steps.map(pointerStep).join('');
}

/** Whether the text is a JSON pointer that a patch may use. */
export function isSafePointer(path: string): boolean {
  const isPointer = (path === '' || path.startsWith('/')) && !/~(?![01])/.test(path);
  return isPointer && !stepsOf(path).some((step) => UNSAFE.has(step));
}

/** What a JSON pointer points to; `undefined` when there is nothing. */
export function valueAt(value: unknown, path: string): unknown {
  return stepsOf(path).reduce<unknown>((node, step) => (hasChild(node, step) ? node[step] : undefined), value);
}

function stepsOf(path: string): string[] {
  const [, ...steps] = path.split('/');
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function edit(node: unknown, steps: readonly string[], depth: number, operation: PatchOperation): unknown {
  const step = steps[depth];
  if (step === undefined) {
    if (operation.op === 'remove') throw new TypeError('The whole value cannot be removed');
    return operation.value;
  }
  const isLast = depth === steps.length - 1;
  if (isLast && operation.op === 'add') return insert(node, step, operation);
  if (!hasChild(node, step)) throw missing(operation);
  if (isLast && operation.op === 'remove') return omit(node, step);
  const child = edit(node[step], steps, depth + 1, operation);
  return Array.isArray(node) ? node.with(Number(step), child) : { ...node, [step]: child };
}

function insert(node: unknown, step: string, operation: PatchOperation & { op: 'add' | 'replace' }): unknown {
  if (Array.isArray(node)) {
    const index = step === '-' ? node.length : INDEX.test(step) ? Number(step) : Number.POSITIVE_INFINITY;
    if (index > node.length) throw missing(operation);
    return node.toSpliced(index, 0, operation.value);
  }
  if (typeof node !== 'object' || node === null) throw missing(operation);
  return { ...node, [step]: operation.value };
}

function omit(node: Record<string, unknown>, step: string): unknown {
  if (Array.isArray(node)) return node.toSpliced(Number(step), 1);
  const { [step]: _, ...others } = node;
  return others;
}

function hasChild(node: unknown, step: string): node is Record<string, unknown> {
  if (typeof node !== 'object' || node === null) return false;
  return Object.hasOwn(node, step) && (!Array.isArray(node) || INDEX.test(step));
}

function missing({ op, path }: PatchOperation): TypeError {
  return new TypeError(`Cannot ${op} ${path}: it does not exist`);
}
