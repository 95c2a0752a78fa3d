import { randomBytes } from 'node:crypto';
import { afterAll, describe } from 'vitest';
import { AuditChain, type AuditDraft } from '../../session/audit/index.ts';
import { GroupCommitter } from '../../session/group-committer.ts';
import { silentLogger } from '../../shared/logger.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Row, Store, Write } from '../../shared/store/store.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { describeOnEmbeddedStores } from './embedded-stores.ts';
import { describeWith, freshDatabase, mongodb, serverLabel } from './services/index.ts';

/** Runs a suite on every store. `open()` makes one that others may use too: take a callee of your own. */
export function describeOnStores(name: string, body: (open: () => Promise<Store>) => void): void {
  describeOnEmbeddedStores(name, body);
  const server = mongodb();
  describe(name, () => {
    describeWith(serverLabel('mongodb', server), server, (server) => {
      const database = freshDatabase(server);
      afterAll(() => database[Symbol.asyncDispose]());
      body(() => openStore(database.url));
    });
  });
}

/** A callee of which nothing but its audit log exists. */
export class AuditRoom {
  readonly calleeId = `lab-${randomBytes(4).toString('hex')}`;
  readonly clock = new ManualClock();
  readonly store: Store;

  constructor(store: Store) {
    this.store = store;
  }

  /** One life of a process: what it puts on record goes into a chain of its own. */
  life(): (...drafts: AuditDraft[]) => Promise<void> {
    const { store, calleeId, clock } = this;
    const audit = new AuditChain(store, { calleeId, clock });
    const committer = new GroupCommitter(store, { clock, logger: silentLogger, audit });
    return async (...drafts) => {
      clock.advance(1);
      await committer.commit({ fence: { broken: false }, entries: [], audit: drafts });
    };
  }

  /** Two chains: one of four records, then one of three. */
  async twoLives(): Promise<void> {
    const first = this.life();
    await first(note('s1', 1));
    await first(note('s2', 2), note('s1', 3));
    const second = this.life();
    await second(note('s1', 4));
    await second({ kind: 'revocation', details: { kid: 'k1' } });
  }

  /** All records, in the order of chains and positions. */
  async rows(): Promise<readonly Row[]> {
    return this.store.scan('audit', 'key', { where: [this.calleeId], limit: 1000 });
  }

  async heads(): Promise<readonly Row[]> {
    return this.store.scan('audit_heads', 'key', { where: [this.calleeId], limit: 1000 });
  }

  /** Writes past everybody. */
  async tamper(...writes: Write[]): Promise<void> {
    if ((await this.store.commit(writes)) !== 'committed') throw new Error('It could not be tampered with');
  }
}

export function note(sessionId: string, id: number): AuditDraft {
  return { kind: 'decision', sessionId, details: { id } };
}

export function removal(row: Row): Write {
  const { callee_id, chain, position } = row;
  const key = [String(callee_id), String(chain)];
  return position === undefined ? { delete: 'audit_heads', key } : { delete: 'audit', key: [...key, Number(position)] };
}

export function put(row: Row): Write {
  return { put: row.position === undefined ? 'audit_heads' : 'audit', row };
}
