import { setTimeout as delay } from 'node:timers/promises';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import type { TransportFixture } from './transport-fixture.ts';

/** What "slow" means between two things in one process. */
const SLOW_MS = 5;

export function memoryFixture(): TransportFixture {
  return {
    adapter: 'memory',
    async start() {
      let slow = false;
      const broker = new MemoryBroker({ beforeStep: () => (slow ? delay(SLOW_MS) : undefined) });
      const stop = async () => {
        broker.stop();
        return async () => broker.start();
      };
      return {
        adapter: 'memory',
        open: ({ login = 'contract', ...options } = {}) => connectMemory({ broker, login, ...options }),
        otherLogin: 'other',
        faults: {
          cutLinks: async () => broker.cutLinks(),
          // Within a process a link that carries nothing and a broker that is gone are the same.
          freezeLinks: stop,
          stopBroker: stop,
          async slowLinks() {
            slow = true;
            return async () => {
              slow = false;
            };
          },
          deleteQueue: async (name) => broker.deleteQueue(name),
        },
        async [Symbol.asyncDispose]() {},
      };
    },
  };
}
