import assert from 'node:assert/strict';
import { isHcpError } from '../../shared/errors.ts';
import type { Store } from '../../shared/store/store.ts';
import type { ContractCase } from '../contract.ts';
import { type OtherProcessProgram, runOtherProcessProgram, type StoreHarness } from './harness.ts';
import { cases, commitAll, entry, idsOf, insertThing, type Proof, positionsOf, TABLES, thing } from './scene.ts';

/** Several writers at once, and answers that do not arrive. */
export function raceCases(harness: StoreHarness): ContractCase[] {
  return [
    ...cases(harness, concurrent, 60_000),
    ...(harness.inOtherProcess === undefined ? [] : cases(harness, otherProcesses(harness.inOtherProcess), 120_000)),
    ...(harness.loseNextAcknowledgement === undefined
      ? []
      : cases(harness, lostAnswers(harness.loseNextAcknowledgement), 60_000)),
  ];
}

const concurrent: Record<string, Proof> = {
  async 'lets exactly one of many concurrent inserts of a key win'({ store, own, open }) {
    const stores = [store, await open()];
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => pick(stores, i).commit([insertThing(own, 'a', { version: i })])),
    );
    const winner = answers.indexOf('committed');
    assert.equal((await store.get('things', [own, 'a']))?.version, winner);
    for (const [i, answer] of answers.entries()) {
      if (i !== winner) assert.deepEqual(answer, { write: 0, reason: 'exists' });
    }
  },
  async 'lets exactly one of many concurrent commits of several writes win'({ store, own, open }) {
    const stores = [store, await open()];
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        pick(stores, i).commit([insertThing(own, `only ${i}`), { insert: 'entries', row: entry(own, 1, `by ${i}`) }]),
      ),
    );
    const winner = answers.indexOf('committed');
    assert.deepEqual(await idsOf(store.scan('things', 'key', { where: [own] })), [`only ${winner}`]);
    for (const [i, answer] of answers.entries()) {
      if (i !== winner) assert.deepEqual(answer, { write: 1, reason: 'exists' });
    }
  },
  async 'lets exactly one of many concurrent claims of a unique value win'({ store, own, open }) {
    const stores = [store, await open()];
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => pick(stores, i).commit([insertThing(own, `t${i}`, { badge: 'gold' })])),
    );
    assert.equal(answers.filter((answer) => answer === 'committed').length, 1);
    assert.equal((await store.scan('things', 'key', { where: [own] })).length, 1);
  },
  async 'lets concurrent puts of a new row all succeed'({ store, own, open }) {
    const stores = [store, await open()];
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        pick(stores, i).commit([{ put: 'things', row: thing(own, 'a', { version: i }) }]),
      ),
    );
    assert.deepEqual(new Set(answers), new Set(['committed']));
  },
  async 'loses no conditional increment of many writers'({ store, own, open }) {
    const stores = [store, await open()];
    await commitAll(store, [insertThing(own, 'counter', { version: 0 })]);
    const program = counting(own, 10);
    await Promise.all(Array.from({ length: 6 }, (_, i) => runOtherProcessProgram(pick(stores, i), program)));
    assert.equal((await store.get('things', [own, 'counter']))?.version, 60);
  },
  async 'makes one log of concurrent appends to the same positions'({ store, own, open }) {
    const stores = [store, await open()];
    const answers = await Promise.all(
      stores.map((through, i) =>
        through.append(
          'entries',
          [1, 2, 3, 4, 5].map((p) => entry(own, p, `by ${i}`)),
        ),
      ),
    );
    assert.deepEqual(await positionsOf(store, own), [1, 2, 3, 4, 5]);
    const bodies = (await store.scan('entries', 'key', { where: [own] })).map((row) => row.body);
    for (const [i, answer] of answers.entries()) {
      const kept = bodies.filter((body) => body === `by ${i}`).length;
      assert.equal(answer === 'appended' ? 5 : answer.write, kept);
    }
  },
};

function otherProcesses(inOtherProcess: (program: OtherProcessProgram) => Promise<void>): Record<string, Proof> {
  return {
    async 'loses no increment of processes that race for one row'({ store, own }) {
      await commitAll(store, [insertThing(own, 'counter', { version: 0 })]);
      const program = counting(own, 50);
      let over = false;
      let here = 0;
      const others = Promise.all([inOtherProcess(program), inOtherProcess(program)]).finally(() => {
        over = true;
      });
      const race = async () => {
        for (; !over; here++) {
          await runOtherProcessProgram(store, counting(own, 1));
          await nextTurn();
        }
      };
      await Promise.all([others, race()]);
      assert.equal((await store.get('things', [own, 'counter']))?.version, 100 + here);
    },
    async 'sees at once what another process has committed'({ store, own }) {
      await commitAll(store, [insertThing(own, 'counter', { version: 0 })]);
      await inOtherProcess(counting(own, 3));
      assert.equal((await store.get('things', [own, 'counter']))?.version, 3);
    },
  };
}

function lostAnswers(loseNext: (store: Store) => Promise<void>): Record<string, Proof> {
  return {
    async 'neither loses nor doubles a single write whose acknowledgement is lost'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      await loseNext(store);
      await committedOrUnknown(
        store.commit([{ patch: 'things', key: [own, 'a'], set: { version: 2 }, if: { version: 1 } }]),
      );
      assert.equal((await store.get('things', [own, 'a']))?.version, 2);
      await loseNext(store);
      await committedOrUnknown(store.commit([insertThing(own, 'b')]));
      assert.deepEqual(await store.commit([insertThing(own, 'b')]), { write: 0, reason: 'exists' });
    },
    async 'neither loses nor doubles a commit of several writes whose acknowledgement is lost'({ store, own }) {
      await commitAll(store, [insertThing(own, 'a')]);
      await loseNext(store);
      await committedOrUnknown(
        store.commit([
          { patch: 'things', key: [own, 'a'], set: { version: 2 }, if: { version: 1 } },
          { insert: 'entries', row: entry(own, 1) },
        ]),
      );
      assert.equal((await store.get('things', [own, 'a']))?.version, 2);
      assert.deepEqual(await positionsOf(store, own), [1]);
    },
    async 'neither loses nor doubles an append whose acknowledgement is lost'({ store, own }) {
      await loseNext(store);
      await committedOrUnknown(store.append('entries', [entry(own, 1), entry(own, 2)]));
      assert.deepEqual(await positionsOf(store, own), [1, 2]);
      assert.equal(await store.append('entries', [entry(own, 3)]), 'appended');
    },
    async 'neither loses nor doubles a transaction whose acknowledgement is lost'({ store, own }) {
      await commitAll(store, [insertThing(own, 'counter', { version: 0 })]);
      await loseNext(store);
      await committedOrUnknown(
        store.transaction(async (tx) => {
          const row = await tx.get('things', [own, 'counter']);
          const version = Number(row?.version) + 1;
          await tx.write([{ patch: 'things', key: [own, 'counter'], set: { version } }]);
          await tx.write([{ insert: 'entries', row: entry(own, version) }]);
          return 'committed';
        }),
      );
      assert.equal((await store.get('things', [own, 'counter']))?.version, 1);
      assert.deepEqual(await positionsOf(store, own), [1]);
    },
  };
}

async function committedOrUnknown(action: Promise<unknown>): Promise<void> {
  try {
    assert.match(String(await action), /^(committed|appended)$/);
  } catch (error) {
    if (!isHcpError(error, 'store_outcome_unknown')) throw error;
  }
}

function counting(own: string, times: number): OtherProcessProgram {
  return { tables: TABLES, increment: { table: 'things', key: [own, 'counter'], column: 'version', times } };
}

function pick(stores: readonly Store[], i: number): Store {
  const store = stores[i % stores.length];
  assert.ok(store);
  return store;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
