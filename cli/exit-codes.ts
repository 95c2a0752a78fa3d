/** What the `hcp` command ends with. */
export const EXIT = {
  /** Done; the task completed, the check passed. */
  ok: 0,
  /** The task failed or was aborted, or something was found to be wrong. */
  failed: 1,
  /** Wrong arguments. */
  usage: 2,
  /** A server or a file cannot be reached, opened or read. */
  unreachable: 3,
  /** The other side said no: rejected, refused, not open. */
  refused: 4,
  /** There is no such session, approval or event. */
  notFound: 5,
  /** Stopped by the user. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** One line each, for `hcp help exit-codes` and the docs. */
export const EXIT_CODES: readonly (readonly [code: ExitCode, meaning: string])[] = [
  [EXIT.ok, 'done; the task completed, the check passed'],
  [EXIT.failed, 'the task failed or was aborted, or something was found to be wrong'],
  [EXIT.usage, 'wrong arguments'],
  [EXIT.unreachable, 'a server or a file cannot be reached, opened or read'],
  [EXIT.refused, 'the other side said no: rejected, refused, not open'],
  [EXIT.notFound, 'there is no such session, approval or event'],
  [EXIT.interrupted, 'stopped by the user'],
];
