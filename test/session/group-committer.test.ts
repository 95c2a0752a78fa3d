import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { AuditChain, type AuditDraft, verifyAudit } from '../../session/audit/index.ts';
import { type Fence, GroupCommitter, type SessionCommit } from '../../session/group-committer.ts';
import { type LogEntry, logRow, readLog } from '../../session/log.ts';
import { silentLogger } from '../../shared/logger.ts';
import type { Store, Write } from '../../shared/store/store.ts';
import { collect, describeOnEmbeddedStores } from '../support/embedded-stores.ts';
import { FaultyStore } from '../support/faulty-store.ts';
import { RecordingClock } from '../support/recorder.ts';
import { verifies } from '../support/verifies.ts';

/** One ownership of a session: hands out positions as a writer does. */
class Owner {
  readonly fence: Fence = { broken: false };
  readonly sessionId: string;
  #position: number;

  constructor(sessionId: string, position = 0) {
    this.sessionId = sessionId;
    this.#position = position;
  }

  step(entries = 1, writes: readonly Write[] = [], audit: readonly AuditDraft[] = []): SessionCommit {
    return { fence: this.fence, entries: Array.from({ length: entries }, () => this.#entry()), writes, audit };
  }

  #entry(): LogEntry {
    const position = ++this.#position;
    const messageId = randomUUID();
    return { sessionId: this.sessionId, position, sequence: position, kind: 'log', messageId, at: 0, body: undefined };
  }
}

/** Something to be stored with the log. */
function instance(id: string): Write {
  return { put: 'instances', row: { callee_id: 'lab', instance_id: id, lease_until: 1 } };
}

function build(inner: Store) {
  const faulty = new FaultyStore(inner);
  const clock = new RecordingClock();
  const audit = new AuditChain(faulty.store, { calleeId: 'lab', clock });
  const committer = new GroupCommitter(faulty.store, { clock, logger: silentLogger, audit });
  return { faulty, clock, committer, calls: faulty.calls.all };
}

function note(id: string): AuditDraft {
  return { kind: 'decision', details: { id } };
}

/** What is on record, of all chains. Throws unless they are intact. */
async function recorded(store: Store): Promise<string[]> {
  expect(await verifyAudit(store, 'lab')).toEqual([]);
  const rows = await store.scan('audit', 'key', { where: ['lab'], limit: 1000 });
  return rows.flatMap(({ body }) => JSON.parse(String(body)).details.id ?? []);
}

const idsOf = (commits: readonly SessionCommit[]) =>
  commits.flatMap(({ entries }) => entries.map(({ messageId }) => messageId));

async function logged(store: Store, sessionId: string): Promise<string[]> {
  return (await collect(readLog(store, sessionId))).map(({ messageId }) => messageId);
}

describeOnEmbeddedStores('the group committer', (open) => {
  it('sends what is asked for in one turn together, and what comes meanwhile as the next one', async () => {
    await using store = await open();
    const { faulty, committer, calls } = build(store);
    const [a, b] = [new Owner('a'), new Owner('b')];
    const { reached, release } = faulty.hold();
    const first = [a.step(), b.step()];
    const outcomes = first.map((step) => committer.commit(step));
    await reached;
    const later = Array.from({ length: 50 }, (_, index) => (index % 2 ? a : b).step());
    outcomes.push(...later.map((step) => committer.commit(step)));
    release();
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['committed']));
    expect(calls).toEqual([
      { method: 'append', size: 2 },
      { method: 'append', size: 50 },
    ]);
    for (const owner of [a, b]) {
      const mine = [...first, ...later].filter(({ entries }) => entries[0]?.sessionId === owner.sessionId);
      expect(await logged(store, owner.sessionId)).toEqual(idsOf(mine));
    }
  });

  it('does not wait when nothing is under way', async () => {
    await using store = await open();
    const { committer, calls, clock } = build(store);
    const a = new Owner('a');
    for (let i = 0; i < 3; i++) expect(await committer.commit(a.step())).toBe('committed');
    expect(calls.map(({ size }) => size)).toEqual([1, 1, 1]);
    expect(clock.delays.all).toEqual([]);
  });

  it('makes one commit of a group in which anything but the log changes', async () => {
    await using store = await open();
    const { committer, calls } = build(store);
    const [a, b] = [new Owner('a'), new Owner('b')];
    const steps = [a.step(2), b.step(1, [instance('i1')]), a.step()];
    await Promise.all(steps.map((step) => committer.commit(step)));
    expect(calls).toEqual([{ method: 'commit', size: 5 }]);
    expect(await logged(store, 'a')).toHaveLength(3);
    expect(await store.get('instances', ['lab', 'i1'])).toBeDefined();
  });

  it('makes several calls of what is too much for one', async () => {
    await using store = await open();
    const { committer, calls } = build(store);
    const a = new Owner('a');
    await Promise.all(Array.from({ length: 1001 }, () => committer.commit(a.step())));
    expect(calls.map(({ size }) => size)).toEqual([500, 500, 1]);
    expect(await logged(store, 'a')).toHaveLength(1001);
  });

  for (const writes of [[], [instance('i1')]] as Write[][]) {
    const kind = writes.length > 0 ? 'commit' : 'append';

    verifies('HCP-112', `a conflict in one ${kind} hits only its session, and all of that from there on`, async () => {
      await using store = await open();
      const { committer } = build(store);
      const [a, b, c] = [new Owner('a'), new Owner('b'), new Owner('c')];
      expect(await committer.commit(b.step())).toBe('committed');
      const rival = new Owner('b', 1).step();
      await store.append('log', rival.entries.map(logRow));
      const steps = [a.step(1, writes), b.step(), c.step(), b.step(1, writes), a.step(), b.step(3)];
      expect(await Promise.all(steps.map((step) => committer.commit(step)))).toEqual([
        'committed',
        'conflict',
        'committed',
        'conflict',
        'committed',
        'conflict',
      ]);
      // Not even where nobody stands in the way.
      expect(await committer.commit(b.step())).toBe('conflict');
      expect(b.fence.broken).toBe(true);
      expect(await logged(store, 'a')).toHaveLength(2);
      expect(await logged(store, 'c')).toHaveLength(1);
      expect((await logged(store, 'b')).slice(1)).toEqual(idsOf([rival]));
    });

    for (const code of ['store_outcome_unknown', 'store_unavailable'] as const) {
      verifies('HCP-112', `a ${kind} whose answer was lost (${code}) is done once and told of`, async () => {
        await using store = await open();
        const { committer, faulty, clock } = build(store);
        const [a, b] = [new Owner('a'), new Owner('b')];
        faulty.loseAnswer(code);
        const steps = [a.step(2, writes), b.step(), a.step(), b.step(3)];
        const outcomes = Promise.all(steps.map((step) => committer.commit(step)));
        await clock.asked(50);
        clock.advance(50);
        expect(new Set(await outcomes)).toEqual(new Set(['committed']));
        expect(await logged(store, 'a')).toHaveLength(3);
        expect(await logged(store, 'b')).toHaveLength(4);
        expect(await committer.commit(a.step())).toBe('committed');
      });
    }
  }

  verifies('HCP-112', 'a group of which only a part got through is completed', async () => {
    for (const count of [1, 2, 3, 4, 5]) {
      await using store = await open();
      const { committer, faulty, clock } = build(store);
      const [a, b] = [new Owner('a'), new Owner('b')];
      faulty.breakOffAfter(count);
      const steps = [a.step(3), b.step(), a.step(2)];
      const outcomes = Promise.all(steps.map((step) => committer.commit(step)));
      await clock.asked(50);
      clock.advance(50);
      expect(await outcomes).toEqual(['committed', 'committed', 'committed']);
      expect(await logged(store, 'a')).toHaveLength(5);
      expect(await logged(store, 'b')).toHaveLength(1);
    }
  });

  verifies('HCP-112', 'a rival who came while the answer was lost keeps what is his', async () => {
    await using store = await open();
    const { committer, faulty, clock } = build(store);
    const a = new Owner('a');
    faulty.loseAnswer();
    const steps = [a.step(), a.step()];
    const first = committer.commit(steps[0] as SessionCommit);
    await clock.asked(50);
    const second = committer.commit(steps[1] as SessionCommit);
    const rival = new Owner('a', 1).step();
    await store.append('log', rival.entries.map(logRow));
    clock.advance(50);
    expect([await first, await second]).toEqual(['committed', 'conflict']);
    expect(await logged(store, 'a')).toEqual(idsOf([steps[0] as SessionCommit, rival]));
  });

  verifies('HCP-114', 'a store that is away is waited for, longer each time', async () => {
    await using store = await open();
    const { committer, faulty, clock, calls } = build(store);
    const a = new Owner('a');
    faulty.beAway(9);
    const outcome = committer.commit(a.step());
    for (const waitMs of [50, 100, 200, 400, 800, 1600, 3200, 5000]) {
      await clock.asked(waitMs);
      clock.advance(waitMs);
    }
    await clock.asked(5000, 2);
    const later = committer.commit(a.step());
    clock.advance(5000);
    expect([await outcome, await later]).toEqual(['committed', 'committed']);
    expect(calls).toHaveLength(11);
  });

  it('gives up waiting when it is closed, and writes nothing behind what it gave up', async () => {
    await using store = await open();
    const { committer, faulty, clock } = build(store);
    const [a, b] = [new Owner('a'), new Owner('b')];
    // Away for the group and for the first of it alone; then the store is back.
    faulty.beAway(2);
    const outcomes = Promise.allSettled([a.step(), a.step(), b.step()].map((step) => committer.commit(step)));
    await clock.asked(50);
    await committer.close();
    const closed = { status: 'rejected', reason: expect.objectContaining({ code: 'callee_closed' }) };
    expect(await outcomes).toEqual([closed, closed, { status: 'fulfilled', value: 'committed' }]);
    expect(await logged(store, 'a')).toEqual([]);
    expect(await logged(store, 'b')).toHaveLength(1);
  });

  it('closes when nothing waits, twice', async () => {
    await using store = await open();
    const { committer, faulty } = build(store);
    const a = new Owner('a');
    const { reached, release } = faulty.hold();
    const outcome = committer.commit(a.step());
    await reached;
    const closed = committer.close();
    release();
    await closed;
    expect(await outcome).toBe('committed');
    await committer.close();
  });

  verifies('HCP-111', 'what the store can never take fails alone, and nothing of its session follows it', async () => {
    await using store = await open();
    const { committer } = build(store);
    const [a, b] = [new Owner('a'), new Owner('b')];
    const unstorable: Write = { put: 'instances', row: { callee_id: 'half \ud83e', instance_id: 'i', lease_until: 1 } };
    const steps = [a.step(), b.step(), a.step(1, [unstorable]), a.step(), b.step()];
    const outcomes = await Promise.allSettled(steps.map((step) => committer.commit(step)));
    const failed = { status: 'rejected', reason: expect.objectContaining({ code: 'store_value_invalid' }) };
    const committed = { status: 'fulfilled', value: 'committed' };
    expect(outcomes).toEqual([committed, committed, failed, failed, committed]);
    await expect(committer.commit(a.step())).rejects.toMatchObject({ code: 'store_value_invalid' });
    expect(await logged(store, 'a')).toHaveLength(1);
    expect(await logged(store, 'b')).toHaveLength(2);
  });

  verifies('HCP-312', 'a step goes on record in the commit that makes it durable', async () => {
    await using store = await open();
    const { committer, calls } = build(store);
    const [a, b] = [new Owner('a'), new Owner('b')];
    const steps = [a.step(1, [], [note('a1')]), b.step(1), a.step(1, [instance('i1')], [note('a2'), note('a3')])];
    await Promise.all(steps.map((step) => committer.commit(step)));
    await committer.commit(b.step(0, [], [note('b1')]));
    // Three entries, a write, the opening, three records and the head; then a record and the head.
    expect(calls).toEqual([
      { method: 'commit', size: 9 },
      { method: 'commit', size: 2 },
    ]);
    expect(await recorded(store)).toEqual(['a1', 'a2', 'a3', 'b1']);
  });

  it('reads nothing, and appends, where nothing goes on record', async () => {
    await using store = await open();
    const refuse = async () => expect.fail('It was read');
    const { committer, calls } = build({ ...store, get: refuse, scan: refuse });
    const a = new Owner('a');
    await committer.commit(a.step(2));
    await committer.commit(a.step(1, [instance('i1')]));
    expect(calls.map(({ method }) => method)).toEqual(['append', 'commit']);
    expect(await recorded(store)).toEqual([]);
    expect(await store.scan('audit_heads', 'key')).toEqual([]);
  });

  verifies('HCP-312', 'a step that met a conflict leaves no record, and the others in its group do', async () => {
    await using store = await open();
    const { committer } = build(store);
    const [a, b] = [new Owner('a'), new Owner('b')];
    await store.append('log', new Owner('b').step().entries.map(logRow));
    const steps = [a.step(1, [], [note('a1')]), b.step(1, [], [note('b1')]), a.step(0, [], [note('a2')])];
    const outcomes = await Promise.all(steps.map((step) => committer.commit(step)));
    expect(outcomes).toEqual(['committed', 'conflict', 'committed']);
    expect(await committer.commit(b.step(0, [], [note('b2')]))).toBe('conflict');
    expect(await recorded(store)).toEqual(['a1', 'a2']);
  });

  for (const code of ['store_outcome_unknown', 'store_unavailable'] as const) {
    verifies('HCP-312', `steps whose answer was lost (${code}) are on record once, with or without a log`, async () => {
      await using store = await open();
      const { committer, faulty, clock } = build(store);
      const [a, b] = [new Owner('a'), new Owner('b')];
      for (const round of ['1', '2']) {
        faulty.loseAnswer(code);
        const audited = [a.step(2, [], [note(`a${round}`)]), b.step(0, [], [note(`b${round}`)]), a.step()];
        const outcomes = Promise.all(audited.map((step) => committer.commit(step)));
        await clock.asked(50, Number(round));
        clock.advance(50);
        expect(await outcomes).toEqual(['committed', 'committed', 'committed']);
      }
      expect(await recorded(store)).toEqual(['a1', 'b1', 'a2', 'b2']);
      expect(await logged(store, 'a')).toHaveLength(6);
      expect(await store.scan('audit_heads', 'key')).toHaveLength(1);
    });
  }

  verifies('HCP-312', 'what cannot be put on record fails alone', async () => {
    await using store = await open();
    const { committer } = build(store);
    const [a, b] = [new Owner('a'), new Owner('b')];
    const endless: AuditDraft = { kind: 'decision', details: { id: 1n } };
    const steps = [a.step(1, [], [note('a1')]), b.step(1, [], [endless]), a.step(1, [], [note('a2')])];
    const outcomes = await Promise.allSettled(steps.map((step) => committer.commit(step)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await recorded(store)).toEqual(['a1', 'a2']);
    expect(await logged(store, 'b')).toEqual([]);
  });

  verifies('HCP-312', 'a record somebody put in the way ends the chain, not the work', async () => {
    await using store = await open();
    const { committer } = build(store);
    const a = new Owner('a');
    await committer.commit(a.step(1, [], [note('a1')]));
    const [, last] = await store.scan('audit', 'key', { where: ['lab'] });
    await store.commit([{ insert: 'audit', row: { ...last, position: 3 } }]);
    expect(await committer.commit(a.step(1, [], [note('a2')]))).toBe('committed');
    const findings = await verifyAudit(store, 'lab');
    expect(new Set(findings.map(({ chain }) => chain))).toEqual(new Set([last?.chain]));
    await store.commit([{ delete: 'audit', key: ['lab', String(last?.chain), 3] }]);
    expect(await recorded(store)).toEqual(['a1', 'a2']);
  });

  it('refuses a step with something for the record when it has no chain', async () => {
    await using store = await open();
    const committer = new GroupCommitter(store, { clock: new RecordingClock(), logger: silentLogger });
    await expect(committer.commit(new Owner('a').step(1, [], [note('a1')]))).rejects.toThrow(TypeError);
    expect(await logged(store, 'a')).toEqual([]);
  });
});
