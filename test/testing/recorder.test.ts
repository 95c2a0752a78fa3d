import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { acceptKnownCallers, createCallee } from '../../callee/index.ts';
import { createCaller, type EventHandler } from '../../caller/index.ts';
import { createMemoryStore } from '../../shared/store/memory/index.ts';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import { createFaultPlan, faultyTransport, promote, recordSession, replayRecording } from '../../testing/index.ts';
import { enter, entries, inOrder, LEDGER_TABLES } from '../support/ledger.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'hcp-recorder-'));
afterAll(() => rmSync(folder, { recursive: true }));

const COUNT = {
  name: 'test.count',
  version: '1.0.0',
  description: 'Counts',
  input_schema: { type: 'object' },
  output_schema: { type: 'object' },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
} as const;

/** Records a session of a real callee on a link that repeats and reorders; tells its token and how many events there were. */
async function record(file: string): Promise<{ sessionId: string; token: string; events: number }> {
  const broker = new MemoryBroker();
  const store = createMemoryStore({ tables: LEDGER_TABLES });
  await using calleeLink = await connectMemory({ broker, login: 'lab' });
  await using callee = createCallee({
    calleeId: 'lab',
    transport: calleeLink,
    store,
    policy: acceptKnownCallers(['alpha']),
  });
  callee.capability(COUNT, async (_, run) => {
    for (let i = 1; i <= 5; i++) await run.progress({ stage: 'counting', message: String(i) });
    return { outputs: { counted: 5 } };
  });
  await callee.start();
  const plan = createFaultPlan({ seed: 3, duplicate: 0.4, reorder: 0.2, maxDelayMs: 5 });
  await using link = faultyTransport(await connectMemory({ broker, login: 'alpha' }), plan);
  const transport = recordSession(link, { file });
  await using caller = createCaller({ callerId: 'alpha', transport, store, onEvent: enter });
  const session = await caller.submit({ capability: 'test.count', intent: 'Count', inputs: {} }, { calleeId: 'lab' });
  await session.result();
  const sessionId = String(session.sessionId);
  const row = await store.get('follows', ['alpha', sessionId]);
  const { session_token: token } = JSON.parse(String(row?.accepted)).payload;
  return { sessionId, token, events: (await entries(store, sessionId)).length };
}

const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('a recording', () => {
  const file = join(folder, 'session.jsonl');
  const recorded = record(file);

  it('holds what was sent and everything that was received, repetitions included', async () => {
    const { events } = await recorded;
    const [head, ...messages] = linesOf(file);
    expect(head.hcp_recording).toBe(1);
    expect(messages[0]).toMatchObject({ direction: 'sent', properties: { type: 'task_submit' } });
    const received = messages.filter(
      ({ direction, properties }) => direction === 'received' && properties.type === 'event',
    );
    expect(new Set(received.map(({ properties }) => properties.messageId)).size).toBe(events);
    expect(received.length).toBeGreaterThan(events);
    expect(received.every(({ properties }) => properties.userId === 'lab')).toBe(true);
  });

  it('holds no token', async () => {
    const { token } = await recorded;
    expect(token.length).toBeGreaterThan(20);
    const text = readFileSync(file, 'utf8');
    expect(text).not.toContain(token);
    expect(text).toContain('recorded-token-1');
  });

  it('is never written over another file', async () => {
    await recorded;
    await using link = await connectMemory();
    expect(() => recordSession(link, { file })).toThrow('EEXIST');
  });

  it('replayed, gives a handler each event once and in order, and the outcome', async () => {
    const { sessionId, events } = await recorded;
    const store = createMemoryStore({ tables: LEDGER_TABLES });
    const { sessions, effects } = await replayRecording(file, { onEvent: enter, store });
    expect(sessions).toEqual([
      {
        ...{ sessionId, state: 'COMPLETED', outcome: { status: 'completed', outputs: { counted: 5 } } },
        ...{ lastSequence: events, holes: [], parked: [] },
      },
    ]);
    const sequences = Array.from({ length: events }, (_, index) => index + 1);
    expect(await entries(store, sessionId)).toEqual(inOrder(sequences));
    expect(effects.ledger).toHaveLength(events);
  });

  it('replayed, tells which event a handler cannot process', async () => {
    await recorded;
    const onEvent: EventHandler = async ({ payload }) => {
      if (payload.sequence === 3) throw new Error('Three is too much');
    };
    const { sessions } = await replayRecording(file, { onEvent, maxAttempts: 1 });
    expect(sessions[0]?.parked).toEqual([{ sequence: 3, reason: 'Three is too much' }]);
  });

  it('that is cut off has no outcome', async () => {
    await recorded;
    const lines = readFileSync(file, 'utf8').split('\n');
    const cut = join(folder, 'cut.jsonl');
    const isEnd = (line: string) => line.includes('task_completed') || line.includes('session_closed');
    writeFileSync(cut, lines.filter((line) => !isEnd(line)).join('\n'));
    const { sessions } = await replayRecording(cut, {
      onEvent: enter,
      store: createMemoryStore({ tables: LEDGER_TABLES }),
    });
    expect(sessions[0]?.outcome).toBeNull();
  });

  it.each([
    ['{"some":"json"}\n', 'is no recording'],
    ['{"hcp_recording":1}\n', 'has no task_submit'],
  ])('that is none is refused: %j', async (text, sentence) => {
    const other = join(folder, 'other.jsonl');
    writeFileSync(other, text);
    await expect(replayRecording(other, { onEvent: enter })).rejects.toThrow(sentence);
  });

  it('becomes a test that passes as long as the handler does the same, and fails when it does not', async () => {
    const { events } = await recorded;
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(ROOT, join(folder, 'node_modules', 'hcp-sdk'));
    const handler = join(folder, 'ledger.mjs');
    const testFile = join(folder, 'session.test.mjs');
    writeFileSync(handler, ledgerModule('payload.sequence'));
    const { effects } = await promote(file, testFile, { handler });
    expect(effects.seen).toHaveLength(events);
    const run = () => promisify(execFile)(process.execPath, ['--test', testFile], { cwd: folder });
    expect((await run()).stdout).toMatch(/pass 1\b/);
    writeFileSync(handler, ledgerModule('payload.sequence * 2'));
    await expect(run()).rejects.toThrow();
    await expect(promote(file, testFile, { handler })).rejects.toThrow('EEXIST');
  }, 60_000);

  it('is refused as a test of a module without a handler', async () => {
    await recorded;
    const handler = join(folder, 'empty.mjs');
    writeFileSync(handler, 'export const other = 1;');
    await expect(promote(file, join(folder, 'x.test.mjs'), { handler })).rejects.toThrow('must export onEvent');
  });
});

function ledgerModule(value: string): string {
  return `import { hcpTables } from 'hcp-sdk';
export const tables = {
  ...hcpTables,
  seen: { columns: { session_id: 'text', sequence: 'integer' }, key: ['session_id', 'sequence'], indexes: {} },
};
export async function onEvent({ session_id, payload }, tx) {
  await tx.write([{ insert: 'seen', row: { session_id, sequence: ${value} } }]);
}
`;
}
