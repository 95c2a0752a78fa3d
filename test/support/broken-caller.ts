// A small caller that keeps its place in the report file itself: a good one, unless HCP_FLAW names what is wrong with it.
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { openTransport } from '../../shared/transport/open-transport.ts';
import { connectSqlite } from '../../shared/transport/sqlite/index.ts';
import { commandRoute, eventQueue } from '../../shared/transport/topology.ts';
import type { Delivery } from '../../shared/transport/transport.ts';
import type { CallerFlaw } from './broken-caller-flaws.ts';

const { env } = process;
const [file = '', callerId = '', calleeId = ''] = [env.HCP_CONFORMANCE_FILE, env.HCP_CALLER_ID, env.HCP_CALLEE_ID];
const has = (flaw: CallerFlaw) => env.HCP_FLAW === flaw;
const tell = (line: object) => appendFileSync(file, `${JSON.stringify(line)}\n`);
const lines = (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []).map((l) => JSON.parse(l));

interface Followed {
  cursor: number;
  token: string;
  readonly waiting: Map<number, Waiting>;
  result: string | undefined;
  isClosed: boolean;
  gap: NodeJS.Timeout | undefined;
}
interface Waiting {
  readonly event: Event;
  readonly delivery: Delivery;
}
interface Event {
  readonly event_type: string;
  readonly sequence: number;
  readonly data: Record<string, unknown>;
}

/** Nothing more is done, or acknowledged. */
let isStuck = false;
const open = new Map<string, { readonly retry: NodeJS.Timeout }>();
const sessions = new Map<string, Followed>();
for (const { session_id, sequence, token, submitted, event_type } of has('forgets') ? [] : lines) {
  if (submitted) open.set(submitted, { retry: setTimeout(() => {}) });
  if (token) follow(session_id, token);
  const session = sessions.get(session_id);
  if (session && event_type !== undefined) session.cursor = sequence;
}

const transport = await (env.HCP_AMQP_URL === undefined
  ? connectSqlite({ path: env.HCP_DB ?? '', leaseMs: 500 })
  : openTransport(env.HCP_AMQP_URL));
if (has('submits-first')) {
  await submitAll();
  await delay(1000); // in which it is answered
}
await transport.consume(eventQueue(callerId), receive, { prefetch: 100 });
if (!has('submits-first')) await submitAll();

async function submitAll(): Promise<void> {
  for (let count = 0; count < Number(env.HCP_SUBMITS); count++) await submit(randomUUID());
}

async function submit(messageId: string): Promise<void> {
  const task = { capability: 'hcp.conformance', caller_id: callerId, intent: 'Follow', inputs: { script: [] } };
  const retry = setTimeout(
    () => submit(has('new-bytes') ? randomUUID() : messageId),
    Number(env.HCP_SUBMIT_TIMEOUT_MS),
  );
  open.set(messageId, { retry });
  tell({ submitted: messageId });
  await command('task_submit', null, task, messageId);
}

async function command(type: string, sessionId: string | null, payload: object, messageId: string = randomUUID()) {
  const timestamp = '2026-01-01T00:00:00.000Z';
  const message = { hcp_version: '1.0', message_id: messageId, timestamp, session_id: sessionId, type, payload };
  const properties = {
    ...{ messageId, timestamp: Date.parse(timestamp) / 1000, type, appId: callerId },
    ...{ contentType: 'application/json', contentEncoding: 'utf-8' },
    ...(sessionId !== null && { correlationId: sessionId }),
  };
  await transport.publish({ route: commandRoute(calleeId), body: Buffer.from(JSON.stringify(message)), properties });
}

function follow(sessionId: string, token: string): void {
  const fresh = { cursor: -1, token, waiting: new Map(), result: undefined, isClosed: false, gap: undefined };
  if (!sessions.has(sessionId)) sessions.set(sessionId, fresh);
}

function receive(delivery: Delivery): void {
  if (isStuck) return;
  let message: { session_id: string; type: string; payload: Record<string, unknown>; hcp_version: string };
  try {
    message = JSON.parse(Buffer.from(delivery.body).toString());
  } catch {
    if (has('dies-of-bad-json')) process.exit(1);
    delivery.reject();
    return;
  }
  const { session_id: sessionId, payload } = message;
  const session = sessions.get(sessionId);
  if (message.type === 'task_accepted') {
    const only = open.size === 1 || has('guesses') ? [...open.keys()][0] : undefined;
    const answered = String(payload.in_reply_to ?? only);
    if (open.has(answered)) {
      clearTimeout(open.get(answered)?.retry);
      open.delete(answered);
      follow(sessionId, String(payload.session_token));
      tell({ session_id: sessionId, token: payload.session_token });
    }
  } else if (session && message.type === 'task_completed') {
    session.result = 'completed';
    settle(sessionId, session);
  } else if (session && message.type === 'event' && message.hcp_version.startsWith('1.')) {
    arrive(sessionId, session, payload as unknown as Event, delivery); // as a good callee would say it
    return;
  }
  delivery.ack();
}

function arrive(sessionId: string, session: Followed, event: Event, delivery: Delivery): void {
  const { sequence } = event;
  if (has('acks-first')) delivery.ack();
  if (has('ignores-order') || (has('handles-duplicates') && sequence <= session.cursor)) {
    handle(sessionId, session, { event, delivery });
  } else if (sequence <= session.cursor || session.isClosed) {
    delivery.ack();
  } else {
    session.waiting.set(sequence, { event, delivery });
    proceed(sessionId, session);
  }
}

function proceed(sessionId: string, session: Followed): void {
  const next = () => session.waiting.get(session.cursor + 1) ?? (session.cursor < 0 && session.waiting.get(1));
  for (let turn = next(); turn && !isStuck; turn = next()) handle(sessionId, session, turn);
  clearTimeout(session.gap);
  if (session.waiting.size === 0) {
    settle(sessionId, session);
    return;
  }
  if (has('asks-replay')) void command('x-replay', sessionId, { from_sequence: 1, to_sequence: 2 });
  if (has('waits-for-ever')) return;
  session.gap = setTimeout(() => {
    const first = Math.min(...session.waiting.keys());
    session.cursor = first - 1;
    proceed(sessionId, session);
  }, Number(env.HCP_GAP_HOLD_MS));
}

function handle(sessionId: string, session: Followed, { event, delivery }: Waiting): void {
  const { sequence, event_type, data } = event;
  session.waiting.delete(sequence);
  session.cursor = Math.max(session.cursor, sequence);
  if (has('stops-at-unknown-event') && event_type === 'tool_start') process.exit(1);
  if (data.stage === 'hold' && !lines.some(({ holding }) => holding)) {
    tell({ session_id: sessionId, sequence, holding: true });
    isStuck = true;
    return;
  }
  tell({ session_id: sessionId, sequence, event_type });
  session.isClosed ||= event_type === 'session_closed';
  delivery.ack();
  if (data.stage !== 'abort') return;
  const payload = has('no-token') ? {} : { session_token: session.token };
  void command('abort', sessionId, payload);
}

function settle(sessionId: string, session: Followed): void {
  if (session.result === undefined || (session.waiting.size > 0 && !has('result-at-once'))) return;
  tell({ session_id: sessionId, outcome: session.result });
  session.result = undefined;
}
