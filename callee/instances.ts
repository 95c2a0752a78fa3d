import type { Store } from '../shared/store/store.ts';

/** Marks an instance whose sessions are being taken: it cannot renew any more. */
const DEAD = -1;

/** This process among the instances of its callee: one row, renewed as a whole, however many sessions it runs. */
export class Instances {
  readonly id: string;
  readonly #store: Store;
  readonly #calleeId: string;
  readonly #leaseMs: number;
  #leaseUntil = 0;

  constructor(
    store: Store,
    { calleeId, instanceId, leaseMs }: { calleeId: string; instanceId: string; leaseMs: number },
  ) {
    this.id = instanceId;
    this.#store = store;
    this.#calleeId = calleeId;
    this.#leaseMs = leaseMs;
  }

  /** Also ends an earlier life under the same name: that one cannot renew its lease now. */
  async register(): Promise<void> {
    this.#leaseUntil = (await this.#store.now()) + this.#leaseMs;
    const row = { callee_id: this.#calleeId, instance_id: this.id, lease_until: this.#leaseUntil };
    await this.#store.commit([{ put: 'instances', row }]);
  }

  /** Answers whether we are still among the living. */
  async renew(): Promise<boolean> {
    const until = (await this.#store.now()) + this.#leaseMs;
    // Two renewals within one millisecond are one.
    if (until === this.#leaseUntil) return true;
    const answer = await this.#store.commit([
      {
        patch: 'instances',
        key: [this.#calleeId, this.id],
        set: { lease_until: until },
        if: { lease_until: this.#leaseUntil },
      },
    ]);
    if (answer !== 'committed') return false;
    this.#leaseUntil = until;
    return true;
  }

  /** The other instances, by whether their lease has run out; those can come back only as somebody new. */
  async others(): Promise<{ readonly living: readonly string[]; readonly dead: readonly string[] }> {
    const now = await this.#store.now();
    const rows = await this.#store.scan('instances', 'key', { where: [this.#calleeId], limit: 1000 });
    const others = rows.filter((row) => row.instance_id !== this.id);
    const living: string[] = [];
    const dead: string[] = [];
    for (const row of others) {
      const id = String(row.instance_id);
      if (Number(row.lease_until) >= now) living.push(id);
      else if (row.lease_until === DEAD || (await this.#markDead(id, Number(row.lease_until)))) dead.push(id);
    }
    return { living, dead };
  }

  async forget(instanceId: string): Promise<void> {
    await this.#store.commit([{ delete: 'instances', key: [this.#calleeId, instanceId] }]);
  }

  async #markDead(id: string, leaseUntil: number): Promise<boolean> {
    const answer = await this.#store.commit([
      {
        patch: 'instances',
        key: [this.#calleeId, id],
        set: { lease_until: DEAD },
        if: { lease_until: leaseUntil },
      },
    ]);
    return answer === 'committed';
  }
}
