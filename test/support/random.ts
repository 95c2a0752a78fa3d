/** A source of chance that can be repeated. */
export interface SeededRandom {
  (): number;
  readonly seed: number;
}

/** Seeded by the environment variable, or anew; print the seed where it matters. */
export function seededRandom(variable: string): SeededRandom {
  const seed = Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 31));
  let state = seed;
  // mulberry32
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return Object.assign(random, { seed });
}
