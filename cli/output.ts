import { styleText } from 'node:util';
import type { CalleeMessage } from '../caller/index.ts';
import type { EventMessage } from '../schemas/types.ts';
import type { Call, Io } from './command.ts';

export type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'gray' | 'bold';

/** The text in a colour, on a terminal that wants colours; the text as it is anywhere else. */
export function paint({ isTTY, env }: Pick<Io, 'isTTY' | 'env'>, colour: Colour, text: string): string {
  // Any value but the empty one counts (no-color.org).
  if (!isTTY || env.NO_COLOR) return text;
  return styleText(colour, text, { validateStream: false });
}

/** Lines with their columns under each other; the first row is the heading. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** One line of JSON. A session's token is a secret, also on a screen (HCP-014). */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value, (name, held) => (name === 'session_token' ? undefined : held));
}

/** What others wrote, made fit for one line of a terminal: it could hold escape codes and line ends. */
export function tame(text: unknown): string {
  return (typeof text === 'string' ? text : (jsonLine(text) ?? '')).replace(/\p{Cc}+/gu, ' ');
}

/** `████░░░░░░  40 %` */
export function progressBar(percent: number, width: number): string {
  const share = Math.min(100, Math.max(0, percent));
  const full = Math.round((share / 100) * width);
  return `${'█'.repeat(full)}${'░'.repeat(width - full)} ${String(Math.round(share)).padStart(3)} %`;
}

/** An event in one line: when, which, and what it says. */
export function eventLine({ timestamp, payload }: EventMessage): string {
  const { sequence, event_type: type, data } = payload;
  return `${timestamp.slice(11, 19)}  ${String(sequence).padStart(3)}  ${tame(type)}: ${tame(gist(type, data))}`;
}

/** Anything a callee says, in one line. */
export function messageLine(message: CalleeMessage): string {
  if (message.type === 'event') return eventLine(message);
  const time = message.timestamp.slice(11, 19);
  switch (message.type) {
    case 'task_accepted':
      return `${time}       accepted: risk ${message.payload.risk_level}`;
    case 'task_rejected':
      return `${time}       rejected: ${tame(`${message.payload.reason_code}, ${message.payload.reason_message}`)}`;
    case 'task_completed':
      return `${time}       completed: ${tame(message.payload.outputs)}`;
    case 'task_failed':
      return `${time}       failed: ${tame(`${message.payload.error_code}, ${message.payload.error_message}`)}`;
  }
}

/** The same in its colour. */
export function paintedMessage(io: Pick<Io, 'isTTY' | 'env'>, message: CalleeMessage): string {
  const colour = message.type === 'event' ? eventColour(message) : 'bold';
  return colour === undefined ? messageLine(message) : paint(io, colour, messageLine(message));
}

/** Says what is wrong in one sentence, on stderr: for a command that knows its exit code itself. */
export function complain({ io, json }: Pick<Call, 'io' | 'json'>, code: string, message: string): void {
  io.err(json ? JSON.stringify({ error: { code, message } }) : `hcp: ${message}`);
}

/** What an event is painted in, if anything. */
export function eventColour({ payload: { event_type: type, data } }: EventMessage): Colour | undefined {
  switch (type) {
    case 'warning':
      return 'yellow';
    case 'error':
      return 'red';
    case 'log':
      return data.level === 'error' ? 'red' : data.level === 'warn' ? 'yellow' : 'gray';
    case 'checkpoint_created':
      return 'gray';
    case 'session_closed':
      return data.final_state === 'COMPLETED' ? 'green' : 'red';
    default:
      return undefined;
  }
}

/** What an event says, of whatever kind: receivers accept any (D-25). */
function gist(type: string, data: EventMessage['payload']['data']): string {
  switch (type) {
    case 'session_created':
      return `${data.state}, risk ${data.risk_level}`;
    case 'state_changed':
      return `${data.from_state} to ${data.to_state}, ${data.reason}`;
    case 'progress': {
      const share = typeof data.percent === 'number' ? `${Math.round(data.percent)} % ` : '';
      return `${share}${data.stage}, ${data.message}`;
    }
    case 'log':
      return `${data.level}, ${data.message}`;
    case 'warning':
    case 'error':
      return `${data.code}, ${data.message}`;
    case 'checkpoint_created':
      return `${data.description}`;
    case 'intermediate_result':
      return `${data.result_type} ${tame(data.data)}`;
    case 'session_closed':
      return `${data.final_state}, ${data.reason}`;
    default:
      return tame(data);
  }
}
