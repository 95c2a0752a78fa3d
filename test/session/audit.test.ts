import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AuditHead, auditHeads, inputsHash, readAudit, verifyAudit } from '../../session/audit/index.ts';
import type { Row, Store } from '../../shared/store/store.ts';
import { AuditRoom, describeOnStores, note, put, removal } from '../support/audit-room.ts';
import { collect } from '../support/embedded-stores.ts';
import { verifies } from '../support/verifies.ts';

function hashOf(previous: unknown, body: unknown): string {
  return createHash('sha256').update(`${previous}\n${body}`).digest('hex');
}

/** A row with another body, and a hash that fits it. */
function rewritten(row: Row, change: (body: Record<string, unknown>) => void, previous = row.previous): Row {
  const parsed = JSON.parse(String(row.body));
  change(parsed);
  const body = JSON.stringify(parsed);
  return { ...row, body, previous: previous ?? '', hash: hashOf(previous, body) };
}

/** The records from one on, changed and sealed anew, with the head that belongs to them. */
function rebuilt(rows: readonly Row[], head: Row, change: (body: Record<string, unknown>) => void): Row[] {
  const fresh: Row[] = [];
  for (const row of rows) fresh.push(rewritten(row, change, fresh.at(-1)?.hash ?? row.previous));
  return [...fresh, { ...head, hash: fresh.at(-1)?.hash ?? '' }];
}

interface Scene {
  readonly room: AuditRoom;
  /** Positions 1 to 4, then 1 to 3. */
  readonly older: readonly Row[];
  readonly newer: readonly Row[];
  readonly heads: readonly [Row, Row];
}

async function sceneOn(store: Store): Promise<Scene> {
  const room = new AuditRoom(store);
  await room.twoLives();
  const rows = await room.rows();
  // Two lives make two chains.
  const heads = (await room.heads()) as [Row, Row];
  return { room, older: rows.slice(0, 4), newer: rows.slice(4), heads };
}

const at = (rows: readonly Row[], position: number) => rows[position - 1] as Row; // as many as twoLives() makes

/** Each way to tamper, and what must be said of it: where, and which word. */
const TAMPERINGS: Record<
  string,
  (scene: Scene) => Promise<[chain: unknown, position: number | undefined, word: RegExp]>
> = {
  async 'an edited record'({ room, older }) {
    const row = at(older, 2);
    await room.tamper(put({ ...row, body: String(row.body).replace('"id":1', '"id":7') }));
    return [row.chain, 2, /was changed/];
  },
  async 'an edited record with a hash that fits'({ room, older }) {
    const row = at(older, 2);
    await room.tamper(put(rewritten(row, (body) => Object.assign(body, { details: { id: 7 } }))));
    return [row.chain, 3, /does not follow/];
  },
  async 'an edited column beside the body'({ room, older }) {
    const row = at(older, 3);
    await room.tamper(put({ ...row, session_id: 's9' }));
    return [row.chain, 3, /its session_id is not what its body says/];
  },
  async 'a removed record'({ room, older }) {
    await room.tamper(removal(at(older, 3)));
    return [at(older, 3).chain, 3, /was removed/];
  },
  async 'a removed first record'({ room, newer }) {
    await room.tamper(removal(at(newer, 1)));
    return [at(newer, 1).chain, 1, /was removed/];
  },
  async 'an inserted record'({ room, older }) {
    const row = rewritten(at(older, 4), (body) => Object.assign(body, { position: 5 }), at(older, 4).hash);
    await room.tamper(put({ ...row, position: 5 }));
    return [row.chain, undefined, /5 records, but its head says 4/];
  },
  async 'a record inserted before the beginning'({ room, older }) {
    await room.tamper(put({ ...at(older, 1), position: 0 }));
    return [at(older, 1).chain, 0, /was inserted/];
  },
  async 'swapped rows'({ room, older }) {
    const [a, b] = [at(older, 2), at(older, 3)];
    await room.tamper(put({ ...a, position: 3 }), put({ ...b, position: 2 }));
    return [a.chain, 2, /its position is not/];
  },
  async 'swapped bodies'({ room, older }) {
    const [a, b] = [at(older, 2), at(older, 3)];
    await room.tamper(put({ ...a, body: b.body ?? '' }), put({ ...b, body: a.body ?? '' }));
    return [a.chain, 2, /was changed/];
  },
  async 'a chain that was cut off'({ room, newer }) {
    await room.tamper(removal(at(newer, 3)), removal(at(newer, 2)));
    return [at(newer, 2).chain, 2, /was cut off the end, and so were all up to record 3/];
  },
  async 'an older chain that was cut off, with its head'({ room, older, heads }) {
    const head = { ...heads[0], length: 3, hash: at(older, 3).hash ?? '' };
    await room.tamper(removal(at(older, 4)), put(head));
    return [at(older, 4).chain, 4, /is missing/];
  },
  async 'an older chain that was written anew'({ room, older, heads }) {
    await room.tamper(...rebuilt(older, heads[0], (body) => Object.assign(body, { details: {} })).map(put));
    return [at(older, 1).chain, 4, /is another one/];
  },
  async 'the records of a chain removed'({ room, newer }) {
    await room.tamper(...newer.map(removal));
    return [at(newer, 1).chain, 1, /was cut off/];
  },
  async 'an older chain removed altogether'({ room, older, heads }) {
    await room.tamper(...older.map(removal), removal(heads[0]));
    return [at(older, 1).chain, 4, /is missing/];
  },
  async 'a chain without its head'({ room, newer, heads }) {
    await room.tamper(removal(heads[1]));
    return [at(newer, 1).chain, undefined, /no head/];
  },
  async 'another hash in the head'({ room, heads }) {
    await room.tamper(put({ ...heads[1], hash: 'f'.repeat(64) }));
    return [heads[1].chain, undefined, /does not have the hash of the last record/];
  },
};

describeOnStores('the audit log', (open) => {
  verifies('HCP-312', 'keeps what goes on record, by session and in order, in a chain for each life', async () => {
    await using store = await open();
    const { room, older, newer } = await sceneOn(store);
    expect(await verifyAudit(store, room.calleeId)).toEqual([]);
    const records = await collect(readAudit(store, room.calleeId, 's1'));
    expect(records.map(({ body }) => JSON.parse(body).details.id)).toEqual([1, 3, 4]);
    expect(records[0]).toMatchObject({ calleeId: room.calleeId, position: 2, sessionId: 's1', kind: 'decision' });
    expect(older.map(({ kind }) => kind)).toEqual(['opened', 'decision', 'decision', 'decision']);
    expect(newer.map(({ kind }) => kind)).toEqual(['opened', 'decision', 'revocation']);
    // So that anybody can check it: each hash is over the one before it, a line feed, and the body.
    let previous: unknown = '0'.repeat(64);
    for (const { body, hash, previous: stored } of older) {
      expect([stored, hash]).toEqual([previous, hashOf(previous, body)]);
      previous = hash;
    }
    const { chain } = at(older, 1);
    expect(JSON.parse(String(at(newer, 1).body)).details).toEqual({ heads: [[chain, 4, previous]] });
    expect(JSON.parse(String(at(older, 2).body))).toEqual({
      ...{ callee_id: room.calleeId, chain, position: 2, kind: 'decision', session_id: 's1', details: { id: 1 } },
      at: new Date(Number(at(older, 2).at)).toISOString(),
    });
  });

  it('reads page by page', async () => {
    await using store = await open();
    const room = new AuditRoom(store);
    await room.life()(...Array.from({ length: 1203 }, (_, index) => note('s1', index)));
    const records = await collect(readAudit(store, room.calleeId, 's1'));
    expect(records.map(({ position }) => position)).toEqual(Array.from({ length: 1203 }, (_, index) => index + 2));
    expect(await verifyAudit(store, room.calleeId)).toEqual([]);
    await room.tamper(removal(at(await room.rows(), 900)));
    expect(await verifyAudit(store, room.calleeId)).toEqual([expect.objectContaining({ position: 900 })]);
  });

  for (const [name, tamper] of Object.entries(TAMPERINGS)) {
    verifies('HCP-312', `shows ${name}, and nothing wrong in other chains`, async () => {
      await using store = await open();
      const scene = await sceneOn(store);
      const [chain, position, word] = await tamper(scene);
      const findings = await verifyAudit(store, scene.room.calleeId);
      const where = { chain, ...(position !== undefined && { position }) };
      expect(findings[0]).toEqual({ ...where, problem: expect.stringMatching(word) });
      expect(new Set(findings.map((finding) => finding.chain))).toEqual(new Set([chain]));
    });
  }

  verifies('HCP-312', 'shows any change to any column of any row', async () => {
    await using store = await open();
    const { room } = await sceneOn(store);
    const rows = [...(await room.rows()), ...(await room.heads())];
    const changeEach = async (text: string, number: number) => {
      for (const row of rows) {
        for (const [column, before] of Object.entries(row)) {
          const value = typeof before === 'number' ? number : text;
          if (value === before) continue;
          const changed = { ...row, [column]: value };
          await room.tamper(removal(row), put(changed));
          expect(await verifyAudit(store, room.calleeId), column).not.toEqual([]);
          // It may have stood in the place of another one.
          await room.tamper(removal(changed), ...rows.map(put));
        }
      }
    };
    const text = fc.string({ unit: 'grapheme', maxLength: 80 });
    const number = fc.oneof(fc.integer({ min: -1, max: 5 }), fc.maxSafeInteger());
    await fc.assert(fc.asyncProperty(text, number, changeEach), { numRuns: 3, endOnFailure: true });
    expect(await verifyAudit(store, room.calleeId)).toEqual([]);
  });

  verifies('HCP-312', 'shows by an anchor that the newest chain was written anew, shortened or removed', async () => {
    await using store = await open();
    for (const way of ['anew', 'shortened', 'removed'] as const) {
      const { room, newer, heads } = await sceneOn(store);
      const anchors: AuditHead[] = await auditHeads(store, room.calleeId);
      const { chain } = heads[1];
      if (way === 'anew') {
        await room.tamper(
          ...rebuilt(newer.slice(1), heads[1], (body) => Object.assign(body, { details: {} })).map(put),
        );
      } else if (way === 'shortened') {
        await room.tamper(removal(at(newer, 3)), put({ ...heads[1], length: 2, hash: at(newer, 2).hash ?? '' }));
      } else {
        await room.tamper(...newer.map(removal), removal(heads[1]));
      }
      // Nothing within the store can tell: it is whole again.
      expect(await verifyAudit(store, room.calleeId)).toEqual([]);
      const problem = expect.stringContaining('which an anchor names');
      expect(await verifyAudit(store, room.calleeId, { anchors })).toEqual([{ chain, position: 3, problem }]);
    }
  });

  it('keeps apart what instances put on record at the same time', async () => {
    await using store = await open();
    const room = new AuditRoom(store);
    const instances = [room.life(), room.life(), room.life()];
    const ids = Array.from({ length: 30 }, (_, index) => index);
    await Promise.all(ids.map((id) => instances[id % 3]?.(note('s1', id))));
    await room.life()(note('s1', 30));
    expect(await verifyAudit(store, room.calleeId)).toEqual([]);
    const records = await collect(readAudit(store, room.calleeId, 's1'));
    expect(records.map(({ body }) => JSON.parse(body).details.id)).toEqual([...ids, 30]);
    expect(await room.heads()).toHaveLength(4);
  });

  it('does not suspect a callee that goes on writing, nor an anchor that it has grown past', async () => {
    await using store = await open();
    const room = new AuditRoom(store);
    const record = room.life();
    await record(note('s1', 1));
    const anchors = await auditHeads(store, room.calleeId);
    let id = 1;
    const busy: Store = {
      ...store,
      async get(table, key) {
        await record(note('s1', ++id));
        return store.get(table, key);
      },
    };
    expect(await verifyAudit(busy, room.calleeId, { anchors })).toEqual([]);
    expect(id).toBeGreaterThan(1);
  });

  verifies('HCP-312', 'shows what was done to the chain of a living process, whatever its head says', async () => {
    await using store = await open();
    const room = new AuditRoom(store);
    const record = room.life();
    await record(note('s1', 1), note('s1', 2));
    const [head] = (await room.heads()) as [Row];
    const rows = await room.rows();
    await room.tamper(removal(at(rows, 3)), put({ ...head, length: 2, hash: at(rows, 2).hash ?? '' }));
    expect(await verifyAudit(store, room.calleeId)).toEqual([]);
    await record(note('s1', 3));
    const problem = expect.stringMatching(/^Record 3 of chain .* is missing$/);
    expect(await verifyAudit(store, room.calleeId)).toEqual([{ chain: head.chain, position: 3, problem }]);
    const records = await collect(readAudit(store, room.calleeId, 's1'));
    expect(records.map(({ body }) => JSON.parse(body).details.id)).toEqual([1, 3]);
  });
});

describe('the hash of inputs', () => {
  it('is the same for the same inputs in another order, and pinned', () => {
    const hash = inputsHash({ inputs: { b: [1, { d: null, c: 'ä' }], a: 2 } });
    expect(inputsHash({ inputs: { a: 2, b: [1, { c: 'ä', d: null }] } })).toBe(hash);
    expect(hash).toBe(createHash('sha256').update('{"a":2,"b":[1,{"c":"ä","d":null}]}').digest('hex'));
    expect(inputsHash({ inputs: { a: 2, b: [{ c: 'ä', d: null }, 1] } })).not.toBe(hash);
  });
});
