import type { Capability } from '../../schemas/types.ts';
import type { SessionRecord } from '../../session/record.ts';
import { scanAll } from '../../shared/store/scan-all.ts';
import type { Row, Store, Write } from '../../shared/store/store.ts';

/** The places of the capabilities that run only so many sessions at once, over all instances (HCP-131). */
export class Slots {
  readonly #store: Store;
  readonly #calleeId: string;

  constructor(store: Store, calleeId: string) {
    this.#store = store;
    this.#calleeId = calleeId;
  }

  /** Whether a session would have to be refused. */
  async isFull(declaration: Capability, sessionId: string): Promise<boolean> {
    const limit = declaration.constraints?.concurrent_limit;
    if (limit === undefined) return false;
    const taken = await this.#taken(declaration);
    return taken.length >= limit && !taken.some((row) => row.session_id === sessionId);
  }

  /**
   * Takes a place before the session starts; it is given back with the commit that ends it. A session that was killed in
   * between finds its place again. `full`: all are taken. `unlimited`: it needs none.
   */
  async take(declaration: Capability, sessionId: string): Promise<number | 'full' | 'unlimited'> {
    const limit = declaration.constraints?.concurrent_limit;
    if (limit === undefined) return 'unlimited';
    for (;;) {
      const taken = await this.#taken(declaration);
      const own = taken.find((row) => row.session_id === sessionId);
      if (own) return Number(own.slot);
      if (taken.length >= limit) return 'full';
      const slot = lowestFree(taken);
      const row = { callee_id: this.#calleeId, capability: nameOf(declaration), slot, session_id: sessionId };
      // Else another instance was faster: looked at again.
      if ((await this.#store.commit([{ insert: 'slots', row }])) === 'committed') return slot;
    }
  }

  /** Gives back what a session took that is not accepted after all. */
  async release(sessionId: string): Promise<Write[]> {
    const rows = await this.#store.scan('slots', 'by_session', { where: [sessionId] });
    return rows.map((row) => ({
      delete: 'slots',
      key: [String(row.callee_id), String(row.capability), Number(row.slot)],
    }));
  }

  #taken(declaration: Capability): Promise<readonly Row[]> {
    const where = [this.#calleeId, nameOf(declaration)];
    return Array.fromAsync(scanAll(this.#store, 'slots', 'key', { where }));
  }
}

/** Gives the place of an accepted session back. */
export function freeSlot({ calleeId, slot, version }: SessionRecord, capability: string): Write[] {
  return slot === undefined ? [] : [{ delete: 'slots', key: [calleeId, `${capability}@${version}`, slot] }];
}

function nameOf({ name, version }: Capability): string {
  return `${name}@${version}`;
}

function lowestFree(taken: readonly Row[]): number {
  const slots = new Set(taken.map((row) => Number(row.slot)));
  for (let slot = 0; ; slot++) if (!slots.has(slot)) return slot;
}
