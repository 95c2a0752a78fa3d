import { expect, it } from 'vitest';
import { deleteCheckpoint, draftCheckpoint, insertCheckpoint, readCheckpoints } from '../../session/checkpoints.ts';
import { silentLogger } from '../../shared/logger.ts';
import type { Store } from '../../shared/store/store.ts';
import { describeOnEmbeddedStores } from '../support/embedded-stores.ts';
import { recordingLogger } from '../support/recorder.ts';
import { verifies } from '../support/verifies.ts';

const SESSION = '3fa85f64-5717-4562-b3fc-2c963f66afa6';
const NOW = Date.UTC(2025, 0, 15, 8, 30);

function draft(data: unknown, options: Partial<Parameters<typeof draftCheckpoint>[1]> = {}) {
  return draftCheckpoint(data, { description: 'after one', resumable: true, now: NOW, maxBytes: 1000, ...options });
}

async function keep(store: Store, sequence: number, data: unknown, now = NOW, sessionId = SESSION): Promise<string> {
  const checkpoint = draft(data, { now });
  expect(await store.commit([insertCheckpoint(sessionId, sequence, checkpoint)])).toBe('committed');
  return checkpoint.checkpointId;
}

const sequencesOf = async (store: Store) =>
  (await readCheckpoints(store, SESSION, silentLogger)).map(({ sequence }) => sequence);

describeOnEmbeddedStores('the checkpoints of a session', (open) => {
  verifies('HCP-116', 'come back as they were given', async () => {
    await using store = await open();
    const data = { 'a.b': [1, null, '日本 🧪'], $set: { deep: true } };
    const checkpoint = draft(data, { resumable: false });
    await store.commit([insertCheckpoint(SESSION, 7, checkpoint)]);
    expect(await readCheckpoints(store, SESSION, silentLogger)).toEqual([
      {
        checkpointId: checkpoint.checkpointId,
        sequence: 7,
        description: 'after one',
        resumable: false,
        createdAt: '2025-01-15T08:30:00.000Z',
        data,
      },
    ]);
    expect(checkpoint.checkpointId).toMatch(/^ckpt-[0-9A-HJKMNP-TV-Z]{26}$/);
  });

  verifies('HCP-117', 'are ordered by sequence, newest first, whatever the clock did', async () => {
    await using store = await open();
    for (const [sequence, checkpointId] of [
      [3, 'ckpt-C'],
      [9, 'ckpt-A'],
      [5, 'ckpt-B'],
    ] as const) {
      await store.commit([insertCheckpoint(SESSION, sequence, { ...draft(1), checkpointId })]);
    }
    expect(await sequencesOf(store)).toEqual([9, 5, 3]);
  });

  it('are read beyond one page, and only those of the session', async () => {
    await using store = await open();
    const sequences = Array.from({ length: 251 }, (_, index) => index + 1);
    for (const sequence of sequences) await keep(store, sequence, sequence, NOW + sequence);
    await keep(store, 999, 0, NOW, 'another');
    expect(await sequencesOf(store)).toEqual(sequences.reverse());
  });

  verifies('HCP-117', 'are found damaged by one flipped byte, and the one before is used', async () => {
    await using store = await open();
    await keep(store, 3, { done: 1 });
    const damagedId = await keep(store, 4, { done: 2 });
    const row = await store.get('checkpoints', [SESSION, damagedId]);
    const set = { data: String(row?.data).replace('2', '3') };
    await store.commit([{ patch: 'checkpoints', key: [SESSION, damagedId], set }]);
    const { logger, lines } = recordingLogger();
    const [newest, ...others] = await readCheckpoints(store, SESSION, logger);
    expect(newest).toMatchObject({ sequence: 3, data: { done: 1 } });
    expect(others).toEqual([]);
    expect(lines.all.map((line) => JSON.parse(line))).toEqual([
      { level: 'error', session_id: SESSION, checkpoint_id: damagedId, message: expect.stringContaining('damaged') },
    ]);
  });

  it('never throw when what is stored is no JSON any more', async () => {
    await using store = await open();
    const id = await keep(store, 3, { done: 1 });
    await store.commit([{ patch: 'checkpoints', key: [SESSION, id], set: { data: '{"done":' } }]);
    expect(await readCheckpoints(store, SESSION, silentLogger)).toEqual([]);
  });

  it('are deleted one by one', async () => {
    await using store = await open();
    const id = await keep(store, 3, 1);
    await keep(store, 4, 2);
    await store.commit([deleteCheckpoint(SESSION, id)]);
    expect(await sequencesOf(store)).toEqual([4]);
  });

  it('refuse before anything is stored what they could not give back', async () => {
    await using store = await open();
    expect(() => draft(undefined)).toThrow(TypeError);
    expect(() => draft(() => {})).toThrow(TypeError);
    expect(() => draft({ n: 1n })).toThrow(TypeError);
    // Half of a surrogate pair: JSON escapes it in the data, but a description is stored as it is.
    expect(() => draft({}, { description: 'half \ud83e' })).toThrow(TypeError);
    await keep(store, 3, { half: '\ud83e' });
    expect((await readCheckpoints(store, SESSION, silentLogger))[0]?.data).toEqual({ half: '\ud83e' });
  });

  it('may be as large as allowed, counted in bytes', async () => {
    await using store = await open();
    await keep(store, 3, 'é'.repeat(499)); // 998 bytes and two quotes
    expect(() => draft('é'.repeat(500))).toThrow(expect.objectContaining({ code: 'checkpoint_too_large' }));
  });
});
