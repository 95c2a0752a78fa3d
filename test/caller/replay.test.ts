import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, createCallee, type Executor } from '../../callee/index.ts';
import { type CallerOptions, createCaller } from '../../caller/index.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK } from '../support/world.ts';

const count: Executor = async ({ inputs }, run) => {
  for (let i = 1; i <= Number(inputs.to); i++) await run.progress({ stage: 'counting', message: String(i) });
  return { outputs: {} };
};

/** A link that loses the first copy of these events, as an expired or overflowing queue would. */
function losing(transport: Transport, sequences: readonly number[]): Transport {
  const toLose = new Set(sequences);
  const consume: Transport['consume'] = (queue, handler, options) =>
    transport.consume(
      queue,
      (delivery) => {
        const { type, payload } = JSON.parse(Buffer.from(delivery.body).toString());
        if (type === 'event' && toLose.delete(payload.sequence)) return delivery.ack();
        return handler(delivery);
      },
      options,
    );
  return new Proxy(transport, {
    get: (target, name) => {
      if (name === 'consume') return consume;
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** A real callee and a real caller, the caller's link losing some events. */
async function follow(stack: Stack, to: number, lost: readonly number[], options: Partial<CallerOptions> = {}) {
  await using resources = new AsyncDisposableStack();
  const id = randomBytes(4).toString('hex');
  const [calleeId, callerId] = [`lab-${id}`, `alpha-${id}`];
  const [there, here] = [resources.use(await stack.connect()), resources.use(await stack.connect())];
  const [theirs, ours] = [resources.use(await stack.openStore()), resources.use(await stack.openStore())];
  const policy = acceptKnownCallers([callerId]);
  const callee = resources.use(createCallee({ calleeId, transport: there, store: theirs, policy }));
  await callee.capability(TASK, count).start();
  const seen: number[] = [];
  const gaps: unknown[] = [];
  const caller = resources.use(
    createCaller({
      callerId,
      transport: losing(here, lost),
      store: ours,
      onEvent: ({ payload }) => void seen.push(payload.sequence),
      onGap: (gap) => gaps.push(gap),
      ...options,
    }),
  );
  const session = await caller.submit({ capability: 'test.task', intent: 'Count', inputs: { to } }, { calleeId });
  const outcome = await session.result();
  const row = await ours.get('follows', [callerId, String(session.sessionId)]);
  return { seen, gaps, outcome, row };
}

describeOnStacks('replay of lost events', (stack) => {
  verifies('HCP-210', 'events lost on the way are fetched from the log of the callee, and nobody notices', async () => {
    const { seen, gaps, outcome } = await follow(stack(), 30, [5, 6, 7, 20]);
    expect(outcome.status).toBe('completed');
    // The result may be known before session_closed is.
    expect(seen.slice(0, 32)).toEqual(Array.from({ length: 32 }, (_, index) => index + 1));
    expect(gaps).toEqual([]);
  });

  verifies('HCP-221', 'a result that overtook the last events waits for them', async () => {
    const { seen, gaps, outcome } = await follow(stack(), 10, [11, 12]);
    expect(outcome.status).toBe('completed');
    expect(seen.slice(0, 12)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
    expect(gaps).toEqual([]);
  });
});
