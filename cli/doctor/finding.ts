/** One thing that was looked at. */
export interface Finding {
  readonly status: 'ok' | 'warning' | 'problem';
  /** What was looked at: `Node`, `RabbitMQ`, `Queue hcp.cmd.dev`. */
  readonly subject: string;
  readonly message: string;
  /** What to do about it; always there for a problem. */
  readonly fix?: string;
  /** Nothing else could be found out, because it cannot be reached or opened. */
  readonly unreachable?: true;
}

export function ok(subject: string, message: string): Finding {
  return { status: 'ok', subject, message };
}

export function warning(subject: string, message: string, fix: string): Finding {
  return { status: 'warning', subject, message, fix };
}

export function problem(subject: string, message: string, fix: string): Finding {
  return { status: 'problem', subject, message, fix };
}

export function unreachable(subject: string, message: string, fix: string): Finding {
  return { status: 'problem', subject, message, fix, unreachable: true };
}
