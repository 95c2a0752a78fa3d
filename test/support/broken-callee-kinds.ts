import type { Fault, Spoken } from './broken-callee.ts';

export interface BrokenCallee {
  /** What it does, as the end of "a callee that …". */
  readonly does: string;
  /** It leaves something out for which the checks wait. @default false */
  readonly isSilent?: boolean;
  /** The checks that must notice. */
  readonly caughtBy: readonly string[];
  /** A new one each time: some remember. */
  fault(): Fault;
}

/** A callee whose messages are changed like this before they leave. */
export function saying(does: string, caughtBy: readonly string[], change: (said: Spoken) => void): BrokenCallee {
  return { does, caughtBy, fault: () => ({ say: (said) => void change(said) }) };
}

/** A callee to which commands come like this. */
export function hearing(does: string, caughtBy: readonly string[], change: (heard: Spoken) => void): BrokenCallee {
  return { does, caughtBy, fault: () => ({ hear: (heard) => void change(heard) }) };
}

/** With these properties changed. */
export const renamed = ({ properties }: Spoken, change: object) => Object.assign(properties, change);

/** Says this message, each time there is one, only behind the next. */
export function swapping(isLate: (said: Spoken) => boolean): Fault {
  let late: Spoken[] = [];
  return {
    say(said) {
      if (isLate(said)) {
        late.push(said);
        return [];
      }
      const behind = late;
      late = [];
      return [said, ...behind];
    },
  };
}

/** Says something else, or nothing, instead of what it has said before. */
export function repeating(instead: (said: Spoken) => Spoken | undefined): Fault {
  const known = new Set<unknown>();
  return {
    say(said) {
      const isKnown = known.has(said.body.message_id);
      known.add(said.body.message_id);
      if (!isKnown) return undefined;
      const other = instead(said);
      return other ? [other] : [];
    },
  };
}
