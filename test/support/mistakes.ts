import { expect } from 'vitest';

/** An object that has these methods and fails the test when one is called. */
export function untouchable<T>(what: string, methods: readonly string[], more: object = {}): T {
  const calls = methods.map((name) => [
    name,
    () => {
      throw new Error(`${what}.${name}() was called`);
    },
  ]);
  return { ...Object.fromEntries(calls), ...more } as T;
}

/** The sentence a mistake is answered with. */
export function mistake(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    const { message } = error as TypeError;
    // One sentence, for a person.
    expect(message).toMatch(/^[^\n]{15,300}$/);
    expect(message).not.toMatch(/\[object|\.$|Cannot (read|use|destructure)/);
    return message;
  }
  throw new Error('Nothing was thrown');
}
