import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import {
  EMPTY_LOG,
  isStored,
  type LogEntry,
  logDeletes,
  logRow,
  messageEntry,
  readLog,
  readTail,
  tailAfter,
  takeoverEntry,
} from '../../session/log.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import type { Store } from '../../shared/store/store.ts';
import { collect, describeOnEmbeddedStores } from '../support/embedded-stores.ts';
import { verifies } from '../support/verifies.ts';

const SESSION = '3fa85f64-5717-4562-b3fc-2c963f66afa6';
const NOW = Date.UTC(2025, 0, 15);

function entry(position: number, more: Partial<LogEntry> = {}): LogEntry {
  const common = { sessionId: SESSION, kind: 'progress', messageId: randomUUID(), at: NOW };
  return { ...common, position, sequence: position, body: Buffer.from(`{"n":${position}}`), ...more };
}

const takeovers = (from: number, count: number): LogEntry[] =>
  Array.from({ length: count }, (_, index) => takeoverEntry(SESSION, { position: from + index - 1, sequence: 0 }, NOW));

const events = (count: number): LogEntry[] => Array.from({ length: count }, (_, index) => entry(index + 1));

async function stored(store: Store, entries: readonly LogEntry[]): Promise<readonly LogEntry[]> {
  for (let start = 0; start < entries.length; start += 500) {
    expect(await store.append('log', entries.slice(start, start + 500).map(logRow))).toBe('appended');
  }
  return entries;
}

describeOnEmbeddedStores('the log of a session', (open) => {
  verifies('HCP-112', 'gives back what was written, byte for byte', async () => {
    await using store = await open();
    const built = buildMessage({
      type: 'event',
      sessionId: SESSION,
      senderId: 'lab',
      payload: { event_type: 'progress', sequence: 1, data: { stage: 'heizen', message: 'At 320 °C, 日本 🧪' } },
    });
    const said = messageEntry(SESSION, EMPTY_LOG, built, NOW);
    const taken = takeoverEntry(SESSION, tailAfter(EMPTY_LOG, said), NOW);
    await stored(store, [said, taken]);
    const read = await collect(readLog(store, SESSION));
    expect(read).toEqual([said, taken]);
    expect(read[0]).toMatchObject({ position: 1, sequence: 1, kind: 'progress' });
    expect(read[0]?.body?.equals(built.body)).toBe(true);
    expect(read[1]).toMatchObject({ position: 2, sequence: undefined, kind: 'takeover', body: undefined });
  });

  it('is read in order, page after page, from any position', async () => {
    await using store = await open();
    const entries = await stored(store, events(1001));
    await store.append('log', [logRow(entry(1, { sessionId: 'another' }))]);
    expect(await collect(readLog(store, SESSION))).toEqual(entries);
    expect(await collect(readLog(store, SESSION, 499))).toEqual(entries.slice(498));
    expect(await collect(readLog(store, SESSION, 1002))).toEqual([]);
  });

  it('ends after a whole page', async () => {
    await using store = await open();
    await stored(store, events(500));
    expect(await collect(readLog(store, SESSION))).toHaveLength(500);
  });

  it('has an end, also when it is empty', async () => {
    await using store = await open();
    expect(await readTail(store, SESSION)).toEqual({ position: 0, sequence: 0 });
    await stored(store, [entry(1, { sequence: undefined, kind: 'task_accepted' }), entry(2, { sequence: 1 })]);
    expect(await readTail(store, SESSION)).toEqual({ position: 2, sequence: 1 });
  });

  for (const count of [1, 3, 4, 5, 300, 1500]) {
    verifies('HCP-112', `finds the last sequence behind ${count} takeovers`, async () => {
      await using store = await open();
      await stored(store, [...events(3), ...takeovers(4, count)]);
      expect(await readTail(store, SESSION)).toEqual({ position: 3 + count, sequence: 3 });
    });
  }

  it('finds no sequence where nothing but takeovers is', async () => {
    await using store = await open();
    await stored(store, takeovers(1, 300));
    expect(await readTail(store, SESSION)).toEqual({ position: 300, sequence: 0 });
  });

  it('knows an entry from another at its place', async () => {
    await using store = await open();
    const [mine] = await stored(store, events(1));
    expect(await isStored(store, mine as LogEntry)).toBe(true);
    expect(await isStored(store, entry(1))).toBe(false);
    expect(await isStored(store, entry(2))).toBe(false);
  });

  it('is deleted whole, and nothing else', async () => {
    await using store = await open();
    await stored(store, events(1201));
    await store.append('log', [logRow(entry(1, { sessionId: 'another' }))]);
    const bites: number[] = [];
    for await (const deletes of logDeletes(store, SESSION)) {
      bites.push(deletes.length);
      await store.commit(deletes);
    }
    expect(bites).toEqual([500, 500, 201]);
    expect(await collect(readLog(store, SESSION))).toEqual([]);
    expect(await collect(readLog(store, 'another'))).toHaveLength(1);
  });
});
