import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import { AuditChain, type AuditDraft, verifyAudit } from '../../session/audit/index.ts';
import { type Fence, GroupCommitter } from '../../session/group-committer.ts';
import { type LogEntry, logRow, readLog, readTail } from '../../session/log.ts';
import { silentLogger } from '../../shared/logger.ts';
import type { Store, Write } from '../../shared/store/store.ts';
import { collect, describeOnEmbeddedStores } from '../support/embedded-stores.ts';
import { FaultyStore } from '../support/faulty-store.ts';
import { RecordingClock } from '../support/recorder.ts';
import { verifies } from '../support/verifies.ts';

const SESSIONS = ['a', 'b', 'c'] as const;

/** What may happen, in the order it is drawn. */
const action = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('commit'),
      session: fc.constantFrom(...SESSIONS),
      // A step that says more than one thing always changes its session too.
      step: fc.oneof(
        fc.constant({ entries: 1, mixed: false, notes: 0 }),
        fc.record({ entries: fc.integer({ min: 1, max: 3 }), mixed: fc.constant(true), notes: fc.nat(2) }),
        fc.record({ entries: fc.nat(2), mixed: fc.constant(false), notes: fc.integer({ min: 1, max: 2 }) }),
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('turn') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('loseAnswer') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('beAway'), times: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('breakOff'), after: fc.nat(4) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('rival'),
      session: fc.constantFrom(...SESSIONS),
      retaken: fc.boolean(),
    }),
  },
);

type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

interface StepShape {
  readonly entries: number;
  readonly mixed: boolean;
  /** How many records it leaves. */
  readonly notes: number;
}

interface Told {
  readonly ids: readonly string[];
  readonly notes: readonly string[];
  readonly outcome: 'committed' | 'conflict';
}

/** A committer, its sessions, and everybody who gets in the way. */
class Story {
  readonly told: Told[] = [];
  readonly rivals: string[] = [];
  readonly #store: Store;
  readonly #faulty: FaultyStore;
  readonly #clock = new RecordingClock();
  readonly #committer: GroupCommitter;
  readonly #owners = new Map<string, { fence: Fence; position: number }>();
  readonly #open = new Set<Promise<void>>();

  constructor(store: Store) {
    this.#store = store;
    this.#faulty = new FaultyStore(store);
    const { store: faulty } = this.#faulty;
    const clock = this.#clock;
    const audit = new AuditChain(faulty, { calleeId: 'lab', clock });
    this.#committer = new GroupCommitter(faulty, { clock, logger: silentLogger, audit });
  }

  async play(one: Action): Promise<void> {
    if ('step' in one) this.#commit(one.session, one.step);
    else if ('session' in one) await this.#rival(one.session, one.retaken);
    else if ('times' in one) this.#faulty.beAway(one.times);
    else if ('after' in one) this.#faulty.breakOffAfter(one.after);
    else if (one.do === 'loseAnswer') this.#faulty.loseAnswer();
    else if (one.do === 'turn') await turn();
    else await this.settle();
  }

  /** Lets time pass until everything has its answer. */
  async settle(): Promise<void> {
    let over = false;
    const all = Promise.all(this.#open).then(() => {
      over = true;
    });
    while (!over) {
      this.#clock.advance(5000);
      await Promise.race([all, turn()]);
    }
    this.#faulty.faults.length = 0;
  }

  #commit(sessionId: string, { entries: count, mixed, notes: noteCount }: StepShape): void {
    const owner = this.#owners.get(sessionId) ?? { fence: { broken: false }, position: 0 };
    this.#owners.set(sessionId, owner);
    const entries = Array.from({ length: count }, () => entry(sessionId, ++owner.position));
    const row = { callee_id: 'lab', instance_id: sessionId, lease_until: owner.position };
    const writes: Write[] = mixed ? [{ put: 'instances', row }] : [];
    const notes = Array.from({ length: noteCount }, () => randomUUID());
    const audit = notes.map((note): AuditDraft => ({ kind: 'decision', sessionId, details: { note } }));
    const work = this.#committer.commit({ fence: owner.fence, entries, writes, audit }).then((outcome) => {
      this.told.push({ ids: entries.map(({ messageId }) => messageId), notes, outcome });
      this.#open.delete(work);
    });
    this.#open.add(work);
  }

  /** Takes the next position that is free in the store, whatever is under way; perhaps the session comes back to us. */
  async #rival(sessionId: string, retaken: boolean): Promise<void> {
    const { position } = await readTail(this.#store, sessionId);
    const taken = entry(sessionId, position + 1);
    if ((await this.#store.append('log', [logRow(taken)])) !== 'appended') return;
    this.rivals.push(taken.messageId);
    if (retaken) this.#owners.set(sessionId, { fence: { broken: false }, position: taken.position });
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function entry(sessionId: string, position: number): LogEntry {
  const messageId = randomUUID();
  return { sessionId, position, sequence: position, kind: 'log', messageId, at: 0, body: undefined };
}

/** What is on record, in order. */
async function recorded(store: Store): Promise<string[]> {
  const rows = await store.scan('audit', 'key', { where: ['lab'], limit: 1000 });
  return rows.flatMap(({ body }) => JSON.parse(String(body)).details.note ?? []);
}

describeOnEmbeddedStores('the group committer under everything at once', (open) => {
  verifies(
    ['HCP-111', 'HCP-112', 'HCP-312'],
    'keeps every log without a hole, nothing twice, on record or not, what it told of as committed, and nothing else',
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 40 }), async (actions) => {
          await using store = await open();
          const story = new Story(store);
          for (const one of actions) await story.play(one);
          await story.settle();
          const stored: string[] = [];
          for (const sessionId of SESSIONS) {
            const log = await collect(readLog(store, sessionId));
            expect(log.map(({ position }) => position)).toEqual(log.map((_, index) => index + 1));
            stored.push(...log.map(({ messageId }) => messageId));
          }
          const kept = story.told.filter(({ outcome }) => outcome === 'committed');
          const committed = kept.flatMap(({ ids }) => ids);
          // Neither more nor less, so what was told of as a conflict is not there.
          expect(stored.toSorted()).toEqual([...committed, ...story.rivals].toSorted());
          const notes = await recorded(store);
          expect(notes.toSorted()).toEqual(kept.flatMap((told) => told.notes).toSorted());
          expect(await verifyAudit(store, 'lab')).toEqual([]);
          // Lost answers and rivals are no reason to begin another chain.
          expect(await store.scan('audit_heads', 'key')).toHaveLength(notes.length > 0 ? 1 : 0);
        }),
        { numRuns: 150 },
      );
    },
    60_000,
  );
});
