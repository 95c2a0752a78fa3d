import type { TaskSubmit } from '../../schemas/types.ts';
import { SESSION_STATES } from '../../session/lifecycle.ts';
import { recordOf, type SessionRecord } from '../../session/record.ts';
import type { Row, Store } from '../../shared/store/store.ts';
import { countOf, sessionOf, textOf } from '../arguments.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { didYouMean } from '../nearest.ts';
import { jsonLine, table, tame } from '../output.ts';
import { readStory, storyJson, storyLines } from '../session-story.ts';
import { findSession, storeToRead } from '../stored.ts';
import { moment, span } from '../times.ts';
import { UsageError } from '../usage-error.ts';

const LIMIT = 20;
const PAGE = 200;

const list: Command = {
  name: 'sessions list',
  summary: 'the sessions of a callee, the newest first',
  options: {
    state: { type: 'string', value: 'STATE', about: 'only those in this state' },
    limit: { type: 'string', value: 'N', about: `how many at most (${LIMIT})` },
  },
  examples: ['hcp sessions list', 'hcp sessions list --state FAILED --limit 5 --json'],
  async run({ values, json, io, workplace }) {
    const state = stateOf(textOf(values, 'state'));
    const limit = countOf(values, 'limit') ?? LIMIT;
    const store = await storeToRead(workplace);
    const now = await store.now();
    const found = await newest(store, workplace.calleeId, { state, limit, signal: io.signal });
    const briefs = found.map((record) => briefOf(record, now));
    if (json) io.out(jsonLine(briefs));
    else if (briefs.length === 0) io.out(`Callee ${workplace.calleeId} has no such session`);
    else for (const line of table([HEADINGS, ...briefs.map(cells)])) io.out(line);
    return EXIT.ok;
  },
};

const show: Command = {
  name: 'sessions show',
  summary: 'all there is to know about one session, in order of time',
  arguments: '<session>',
  arity: [1, 1],
  examples: ['hcp sessions show 0b7f6a52-6d0a-4a38-9f6e-3c8f0a5a1f11'],
  async run(call) {
    const { json, io, workplace } = call;
    const store = await storeToRead(workplace);
    const record = await findSession(store, workplace.calleeId, sessionOf(call));
    const story = await readStory(store, record);
    const brief = briefOf(record, story.now);
    if (json) io.out(jsonLine({ session: brief, ...storyJson(story) }));
    else for (const line of [...briefLines(brief), ...storyLines(story, io)]) io.out(line);
    return EXIT.ok;
  },
};

export const sessionsCommands: readonly Command[] = [list, show];

function stateOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const state = text.toUpperCase();
  if (SESSION_STATES.some((known) => known === state)) return state;
  throw new UsageError(`There is no state ${text}${didYouMean(state, SESSION_STATES)}`);
}

async function newest(
  store: Store,
  calleeId: string,
  {
    state,
    limit,
    signal,
  }: { readonly state: string | undefined; readonly limit: number; readonly signal: AbortSignal },
): Promise<SessionRecord[]> {
  const found: SessionRecord[] = [];
  let after: Row | undefined;
  for (;;) {
    const range = { where: [calleeId], order: 'descending', limit: PAGE, ...(after && { after }) } as const;
    const rows = await store.scan('sessions', 'by_created', range);
    found.push(...rows.filter((row) => state === undefined || row.state === state).map(recordOf));
    if (found.length >= limit || rows.length < PAGE) return found.slice(0, limit);
    signal.throwIfAborted();
    after = rows.at(-1);
  }
}

/** What one looks at first. In the words of the wire, as all that is printed as JSON. */
interface Brief {
  readonly session_id: string;
  readonly state: string;
  readonly capability: string;
  readonly version: string | null;
  readonly caller_id: string;
  readonly risk_level: string | null;
  readonly data_classification: string | null;
  readonly intent: string;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly duration_ms: number;
}

function briefOf(record: SessionRecord, now: number): Brief {
  const { capability, intent } = (JSON.parse(record.request) as TaskSubmit).payload; // checked when it came
  const { createdAt, closedAt } = record;
  return {
    session_id: record.sessionId,
    state: record.state,
    capability,
    version: record.version ?? null,
    caller_id: record.callerId,
    risk_level: record.riskLevel ?? null,
    data_classification: record.dataClassification ?? null,
    intent,
    started_at: new Date(createdAt).toISOString(),
    ended_at: closedAt === undefined ? null : new Date(closedAt).toISOString(),
    duration_ms: Math.max(0, (closedAt ?? now) - createdAt),
  };
}

const HEADINGS = ['SESSION', 'STATE', 'CAPABILITY', 'CALLER', 'RISK', 'STARTED (UTC)', 'DURATION'];

function cells(brief: Brief): string[] {
  const { session_id, state, capability, caller_id, risk_level, started_at, duration_ms } = brief;
  const started = moment(Date.parse(started_at));
  return [session_id, state, tame(capability), caller_id, risk_level ?? '-', started, span(duration_ms)];
}

function briefLines(brief: Brief): string[] {
  const { capability, version, risk_level, data_classification, started_at, duration_ms } = brief;
  const facts: [string, string][] = [
    ['session', brief.session_id],
    ['state', brief.state],
    ['capability', `${tame(capability)}${version === null ? '' : `, version ${version}`}`],
    ['caller', brief.caller_id],
    ['intent', tame(brief.intent)],
    ['risk', `${risk_level ?? 'not assessed'}${data_classification === null ? '' : `, data ${data_classification}`}`],
    ['started', `${moment(Date.parse(started_at))} UTC, ${span(duration_ms)}${brief.ended_at === null ? ' ago' : ''}`],
  ];
  return table(facts);
}
