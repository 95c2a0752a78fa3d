import type { Transport } from '../../shared/transport/transport.ts';
import { wrapTransport } from '../wrap-transport.ts';
import { FaultyConsumer } from './consumer.ts';
import type { FaultPlan } from './plan.ts';

/**
 * The same transport, whose deliveries come twice, late, in another order or again because the link was lost, as the plan
 * decides. What the broker confirmed is never lost for good. `close` closes the transport.
 */
export function faultyTransport(transport: Transport, plan: FaultPlan): Transport {
  const consumers = new Set<FaultyConsumer>();
  const close = async () => {
    await Promise.all([...consumers].map((consumer) => consumer.close()));
    await transport.close();
  };
  return wrapTransport(transport, {
    close,
    async consume(queue, handler, options = {}) {
      const consumer = new FaultyConsumer(plan, queue.name, handler, options.onInterrupted);
      const inner = await transport.consume(queue, (delivery) => consumer.receive(delivery), {
        ...options,
        onInterrupted: (cause) => consumer.interrupt(cause),
      });
      consumers.add(consumer);
      return consumer.over(inner);
    },
  });
}
