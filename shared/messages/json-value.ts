import { fault, type MessageFault, pointerStep, typeOf } from './fault.ts';
import type { MessageLimits } from './limits.ts';

export interface Inspection {
  /** Keys of all objects together. */
  keys: number;
  fault?: MessageFault;
}

/**
 * Walks a value once and says whether it is plain JSON within the limits: no prototype tricks, nothing that
 * `JSON.stringify` would drop, change or run.
 */
export function inspectJson(root: unknown, limits: MessageLimits): Inspection {
  const inspection: Inspection = { keys: 0 };
  const path: (string | number)[] = [];
  visit(root, 0);
  return inspection;

  /** False stops the walk: the fault is noted. */
  function visit(value: unknown, depth: number): boolean {
    switch (typeof value) {
      case 'boolean':
        return true;
      case 'string':
        return (
          // A UTF-16 unit takes at most three bytes: most texts are never measured.
          value.length * 3 <= limits.textBytes ||
          Buffer.byteLength(value) <= limits.textBytes ||
          refuse('text_too_long', value, `is a text of more than ${limits.textBytes} bytes`)
        );
      case 'number':
        return Number.isFinite(value) || refuse('not_plain_json', value, 'is no finite number');
      case 'object':
        if (value === null) return true;
        if (depth >= limits.depth) return refuse('too_deep', value, `lies deeper than ${limits.depth} levels`);
        return Array.isArray(value) ? visitItems(value, depth + 1) : visitFields(value, depth + 1);
      default:
        return refuse('not_plain_json', value, `is no JSON value but ${typeof value}`);
    }
  }

  function visitItems(items: readonly unknown[], depth: number): boolean {
    for (let i = 0; i < items.length; i++) {
      path.push(i);
      if (!visit(items[i], depth)) return false;
      path.pop();
    }
    return true;
  }

  function visitFields(object: object, depth: number): boolean {
    const prototype = Object.getPrototypeOf(object);
    if (prototype !== Object.prototype && prototype !== null) {
      return refuse('not_plain_json', object, 'is no plain object');
    }
    for (const key of Object.keys(object)) {
      path.push(key);
      if (key === '__proto__') return refuse('prototype_key', object, 'is a key that is never allowed');
      const value = (object as Record<string, unknown>)[key];
      if (value !== undefined) {
        if (++inspection.keys > limits.keys)
          return refuse('too_many_keys', value, `is one key more than ${limits.keys}`);
        if (!visit(value, depth)) return false;
      }
      path.pop();
    }
    return true;
  }

  function refuse(
    code: 'text_too_long' | 'not_plain_json' | 'too_deep' | 'prototype_key' | 'too_many_keys',
    value: unknown,
    what: string,
  ): false {
    const pointer = path.map(pointerStep).join('');
    inspection.fault = fault(code, pointer, typeOf(value), `${pointer || 'The message'} ${what}`);
    return false;
  }
}

/** Freezes a JSON value, so that one parse can be shared by everybody who looks at it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const key in value) deepFreeze(value[key]);
    Object.freeze(value);
  }
  return value;
}
