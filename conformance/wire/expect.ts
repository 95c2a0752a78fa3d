import { isDeepStrictEqual } from 'node:util';

/** Fails the check with this sentence unless the condition holds. */
export function expectThat(condition: unknown, sentence: string): asserts condition {
  if (!condition) throw new Error(sentence);
}

/** Fails the check unless both are the same; `what` begins the sentence: `The routing key`. */
export function expectSame(actual: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, expected)) throw new Error(`${what} is ${show(actual)}, not ${show(expected)}`);
}

/** Fails the check unless the text fits. */
export function expectMatch(actual: unknown, pattern: RegExp, what: string): asserts actual is string {
  if (typeof actual !== 'string' || !pattern.test(actual)) {
    throw new Error(`${what} is ${show(actual)}, which does not fit ${pattern}`);
  }
}

/** A value as it can stand in a sentence. */
export function show(value: unknown): string {
  const text = value === undefined ? 'missing' : JSON.stringify(value);
  return text.length > 600 ? `${text.slice(0, 600)}…` : text;
}
