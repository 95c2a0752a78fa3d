import { isHcpError } from '../shared/errors.ts';
import { scrubUrls } from '../shared/logger.ts';
import type { Io } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { FileError } from './files.ts';
import { tame } from './output.ts';
import { UsageError } from './usage-error.ts';

/** Tells what went wrong in one clear sentence, and answers with what to end. */
export function tellFailure(thrown: unknown, io: Io, json: boolean): ExitCode {
  const error = firstOf(thrown);
  const { code, exit } = io.signal.aborted ? INTERRUPTED : kindOf(error);
  const message = exit === EXIT.interrupted ? 'Interrupted' : sentence(error);
  if (json) io.err(JSON.stringify({ error: { code, message } }));
  else io.err(`hcp: ${message}${exit === EXIT.usage ? ' (hcp --help)' : ''}`);
  return exit;
}

interface Kind {
  readonly code: string;
  readonly exit: ExitCode;
}

const INTERRUPTED: Kind = { code: 'interrupted', exit: EXIT.interrupted };

/** What came first: closing may fail, too, because of it. By name: Node 22 does not know the class. */
function firstOf(error: unknown): unknown {
  const isSecond = error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error;
  return isSecond ? firstOf(error.suppressed) : error;
}

/** Without what could be a password, and in one line, whatever a driver says. */
function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return tame(scrubUrls(text));
}

function kindOf(error: unknown): Kind {
  if (error instanceof UsageError) return { code: 'usage', exit: EXIT.usage };
  if (error instanceof FileError) return { code: 'file', exit: EXIT.unreachable };
  if (error instanceof Error && error.name === 'AbortError') return INTERRUPTED;
  if (!isHcpError(error)) return { code: 'failed', exit: EXIT.failed };
  const { code, reason } = error;
  switch (code) {
    case 'session_unknown':
      return { code, exit: EXIT.notFound };
    case 'approval_not_open':
      return { code, exit: reason === 'unknown' ? EXIT.notFound : EXIT.refused };
    case 'session_closed':
    case 'token_invalid':
      return { code, exit: EXIT.refused };
    case 'callee_unreachable':
    case 'submit_timeout':
    case 'publish_refused':
    case 'queue_deleted':
      return { code, exit: EXIT.unreachable };
    default:
      return { code, exit: /^(transport|store|topology)_/.test(code) ? EXIT.unreachable : EXIT.failed };
  }
}
