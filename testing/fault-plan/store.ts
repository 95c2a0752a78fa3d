import { HcpError } from '../../shared/errors.ts';
import type { Store } from '../../shared/store/store.ts';
import { type FaultPlan, STORE_FAULTS } from './plan.ts';

/**
 * The same store, whose writes now and then do not happen (`store_unavailable`) or happen unheard (`store_outcome_unknown`),
 * as the plan decides. Reads are left alone. `close` closes the store.
 */
export function faultyStore(store: Store, plan: FaultPlan): Store {
  async function through<T>(method: string, subject: string, work: (isAway: boolean) => Promise<T>): Promise<T> {
    const { fault } = plan.decide(`store.${method}`, subject, STORE_FAULTS);
    const answer = await work(fault === 'unavailable');
    if (fault === 'answerLost') throw new HcpError('store_outcome_unknown', 'The fault plan lost the answer');
    return answer;
  }
  return {
    tables: store.tables,
    get: (table, key) => store.get(table, key),
    scan: (table, index, range) => store.scan(table, index, range),
    commit: (writes) =>
      through('commit', `${writes.length} writes`, (isAway) => (isAway ? away() : store.commit(writes))),
    append: (table, rows) =>
      through('append', `${rows.length} rows to ${table}`, (isAway) => (isAway ? away() : store.append(table, rows))),
    transaction: (work) =>
      through('transaction', 'a transaction', (isAway) =>
        // At its end: the work is done, and then rolled back.
        store.transaction(async (tx) => {
          const result = await work(tx);
          return isAway ? away() : result;
        }),
      ),
    now: () => store.now(),
    close: () => store.close(),
    [Symbol.asyncDispose]: () => store.close(),
  };
}

async function away(): Promise<never> {
  throw new HcpError('store_unavailable', 'The fault plan took the store away');
}
