import { newMessageId } from '../shared/ids.ts';
import type { BuiltMessage } from '../shared/messages/build.ts';
import type { Row, Store, Write } from '../shared/store/store.ts';

/** One thing a session said, at its place in the session's log. */
export interface LogEntry {
  readonly sessionId: string;
  readonly position: number;
  /** Events alone have one. */
  readonly sequence: number | undefined;
  /** The message's type, an event's `event_type`, or `takeover`. */
  readonly kind: string;
  readonly messageId: string;
  readonly at: number;
  /** The message as it is published, byte for byte; `undefined` where there is nothing to publish. */
  readonly body: Buffer | undefined;
}

/** The end of a session's log. */
export interface LogTail {
  readonly position: number;
  readonly sequence: number;
}

export const EMPTY_LOG: LogTail = { position: 0, sequence: 0 };

export function messageEntry(sessionId: string, tail: LogTail, built: BuiltMessage, at: number): LogEntry {
  const { message, body } = built;
  const event = message.type === 'event' ? message.payload : undefined;
  return {
    sessionId,
    position: tail.position + 1,
    sequence: event?.sequence,
    kind: event?.event_type ?? message.type,
    messageId: message.message_id,
    at,
    body,
  };
}

/** Takes the next position away from the former owner: whatever it writes there now is refused. */
export function takeoverEntry(sessionId: string, tail: LogTail, at: number): LogEntry {
  return {
    sessionId,
    position: tail.position + 1,
    sequence: undefined,
    kind: 'takeover',
    messageId: newMessageId(),
    at,
    body: undefined,
  };
}

export function tailAfter(tail: LogTail, entry: LogEntry): LogTail {
  return { position: entry.position, sequence: entry.sequence ?? tail.sequence };
}

export function logRow({ sessionId, position, sequence, kind, messageId, at, body }: LogEntry): Row {
  return {
    session_id: sessionId,
    position,
    sequence: sequence ?? null,
    kind,
    message_id: messageId,
    at,
    body: body === undefined ? null : body.toString(),
  };
}

function entryOf(row: Row): LogEntry {
  return {
    sessionId: String(row.session_id),
    position: Number(row.position),
    sequence: row.sequence === null ? undefined : Number(row.sequence),
    kind: String(row.kind),
    messageId: String(row.message_id),
    at: Number(row.at),
    body: row.body === null || row.body === undefined ? undefined : Buffer.from(String(row.body)),
  };
}

const PAGE = 500;

/** A session's log from a position on, page by page. */
export async function* readLog(
  store: Store,
  sessionId: string,
  fromPosition = 1,
  page = PAGE,
): AsyncIterable<LogEntry> {
  let from = fromPosition;
  for (;;) {
    const rows = await store.scan('log', 'key', { where: [sessionId], from, limit: page });
    for (const row of rows) yield entryOf(row);
    if (rows.length < page) return;
    from = Number(rows.at(-1)?.position) + 1;
  }
}

/** The stored events with a sequence within `from`…`to`, in order. */
export async function* readEvents(
  store: Store,
  sessionId: string,
  from: number,
  to: number,
): AsyncIterable<LogEntry & { readonly sequence: number }> {
  if (from > to) return;
  // No event's position is below its sequence: before most stands the acceptance, and the odd takeover between.
  const page = Math.min(PAGE, to - from + 4);
  for await (const entry of readLog(store, sessionId, from, page)) {
    const { sequence } = entry;
    if (sequence === undefined || sequence < from) continue;
    if (sequence > to) return;
    yield { ...entry, sequence };
    if (sequence === to) return;
  }
}

export async function readTail(store: Store, sessionId: string): Promise<LogTail> {
  let position: number | undefined;
  let after: Row | undefined;
  // Between two events lie a few messages without a sequence at most, unless the session changed hands often.
  for (let limit = 4; ; limit = Math.min(PAGE, limit * 4)) {
    const range = { where: [sessionId], order: 'descending', limit, ...(after && { after }) } as const;
    const rows = await store.scan('log', 'key', range);
    position ??= Number(rows[0]?.position ?? 0);
    const sequenced = rows.find((row) => row.sequence !== null);
    if (sequenced !== undefined) return { position, sequence: Number(sequenced.sequence) };
    if (rows.length < limit) return { position, sequence: 0 };
    after = rows.at(-1);
  }
}

/** Whether the entry that stands at this position is this very one: a commit whose answer was lost. */
export async function isStored(store: Store, entry: LogEntry): Promise<boolean> {
  const row = await store.get('log', [entry.sessionId, entry.position]);
  return row?.message_id === entry.messageId;
}

/** Deletes of a whole log, in bites a store can swallow. */
export async function* logDeletes(store: Store, sessionId: string): AsyncIterable<Write[]> {
  for (;;) {
    const rows = await store.scan('log', 'key', { where: [sessionId], limit: PAGE });
    if (rows.length === 0) return;
    yield rows.map((row) => ({ delete: 'log', key: [sessionId, Number(row.position)] }));
  }
}
