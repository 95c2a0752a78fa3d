import type { Store } from './store/store.ts';
import { hcpTables } from './store/tables.ts';
import type { Transport } from './transport/transport.ts';

/** Refuses a name nobody reads, so that a misspelt option is not silently its default. */
export function refuseUnknownOptions(options: object, known: readonly string[], where = ''): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    throw new TypeError(`Unknown option ${where}${name}; did you mean ${where}${nearest(name, known)}?`);
  }
}

interface Range {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

/** Node fires a longer timer at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function integerOption(value: unknown, name: string, { fallback, min, max }: Range): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new TypeError(`${name} must be an integer from ${min} to ${max}, but is ${show(value)}`);
}

export function fractionOption(value: unknown, name: string, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && value >= 0 && value <= 1) return value;
  throw new TypeError(`${name} must be a number from 0 to 1, but is ${show(value)}`);
}

export function booleanOption(value: unknown, name: string): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  throw new TypeError(`${name} must be true or false, but is ${show(value)}`);
}

export function choiceOption<Choice extends string>(
  value: unknown,
  name: string,
  choices: readonly [Choice, ...Choice[]],
): Choice {
  if (value === undefined) return choices[0];
  const choice = choices.find((candidate) => candidate === value);
  if (choice !== undefined) return choice;
  throw new TypeError(`${name} must be ${choices.map((c) => `'${c}'`).join(' or ')}, but is ${show(value)}`);
}

export function methodsOption<T extends object>(value: T, name: string, methods: readonly (keyof T & string)[]): T {
  if (methods.every((method) => typeof value[method] === 'function')) return value;
  throw new TypeError(`${name} must have the methods ${methods.join(', ')}`);
}

export function transportOption(transport: Transport): Transport {
  if (typeof transport?.consume === 'function' && typeof transport.publish === 'function') return transport;
  throw new TypeError('transport must be an open transport, as openTransport gives one');
}

export function storeOption(store: Store): Store {
  if (typeof store?.commit !== 'function' || typeof store.append !== 'function' || typeof store.tables !== 'object') {
    throw new TypeError('store must be an open store, as openStore gives one');
  }
  const missing = Object.keys(hcpTables).filter((table) => !(table in store.tables));
  if (missing.length > 0) {
    throw new TypeError(`store lacks the tables ${missing.join(', ')}: open it with hcpTables among its tables`);
  }
  return store;
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  return typeof value === 'number' || value === null ? String(value) : typeof value;
}

function nearest(name: string, known: readonly string[]): string | undefined {
  const byDistance = known.map((candidate) => ({ candidate, distance: editDistance(name, candidate) }));
  return byDistance.sort((a, b) => a.distance - b.distance)[0]?.candidate;
}

/** Levenshtein. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, left] of [...a.toLowerCase()].entries()) {
    const next = [i + 1];
    for (const [j, right] of [...b.toLowerCase()].entries()) {
      const substitution = (row[j] ?? 0) + (left === right ? 0 : 1);
      next.push(Math.min(substitution, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
