import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, createCallee } from '../../callee/index.ts';
import { type Caller, type CallerOptions, createCaller } from '../../caller/index.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Store } from '../../shared/store/store.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { enter, entries, inOrder, LEDGER_TABLES } from '../support/ledger.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK } from '../support/world.ts';

const EVENTS = 20;
const ALL = inOrder(Array.from({ length: EVENTS + 4 }, (_, index) => index + 1));

/** A callee that counts, and as many processes of one caller as wanted, all on one store. */
class Fleet implements AsyncDisposable {
  readonly callerId = `alpha-${randomBytes(4).toString('hex')}`;
  readonly calleeId = `lab-${randomBytes(4).toString('hex')}`;
  readonly #resources = new AsyncDisposableStack();
  readonly #stack: Stack;
  store!: Store;

  private constructor(stack: Stack) {
    this.#stack = stack;
  }

  static async create(stack: Stack): Promise<Fleet> {
    const fleet = new Fleet(stack);
    fleet.store = await fleet.#openStore();
    const { calleeId, callerId } = fleet;
    const transport = fleet.#resources.use(await stack.connect());
    const policy = acceptKnownCallers([callerId]);
    const callee = fleet.#resources.use(
      createCallee({ calleeId, transport, store: await fleet.#openStore(), policy, prefetch: 50 }),
    );
    await callee
      .capability(TASK, async (_, run) => {
        for (let i = 1; i <= EVENTS; i++) await run.progress({ stage: 'counting', message: String(i) });
        return { outputs: {} };
      })
      .start();
    return fleet;
  }

  /** One more process of the caller, with links of its own. */
  async caller(options: Partial<CallerOptions> = {}): Promise<{ caller: Caller; transport: Transport }> {
    const transport = this.#resources.use(await this.#stack.connect());
    const store = await this.#openStore();
    const { callerId } = this;
    const caller = this.#resources.use(createCaller({ callerId, transport, store, onEvent: enter, ...options }));
    await caller.start();
    return { caller, transport };
  }

  /** Submits and follows to the end, through this process. */
  async task(caller: Caller): Promise<string> {
    const task = { capability: 'test.task', intent: 'Count', inputs: {} };
    const session = await caller.submit(task, { calleeId: this.calleeId });
    expect(await session.result()).toMatchObject({ status: 'completed' });
    return String(session.sessionId);
  }

  /** Waits for the last event too, which may follow the result, and looks at what was done. */
  async assertOnce(sessionIds: readonly string[]): Promise<void> {
    for (const sessionId of sessionIds) {
      await expect.poll(() => entries(this.store, sessionId), { timeout: 20_000 }).toEqual(ALL);
    }
  }

  async #openStore(): Promise<Store> {
    return this.#resources.use(await openStore(this.#stack.storeUrl, { tables: LEDGER_TABLES }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

describeOnStacks('several processes of one caller', (stack) => {
  verifies(
    ['V-135', 'HCP-230'],
    'the second takes over when the first is gone, and every event counts once',
    async () => {
      await using fleet = await Fleet.create(stack());
      const first = await fleet.caller();
      const second = await fleet.caller();
      const sessions = [await fleet.task(first.caller), await fleet.task(second.caller)];
      const running = Promise.all([fleet.task(second.caller), fleet.task(second.caller)]);
      await first.transport.close(); // its deliveries come to the second
      sessions.push(...(await running), await fleet.task(second.caller));
      await fleet.assertOnce(sessions);
    },
  );

  verifies('HCP-209', 'partitions spread the sessions over processes, and each stays in order', async () => {
    await using fleet = await Fleet.create(stack());
    const first = await fleet.caller({ partitions: { count: 2, consume: [0] } });
    const second = await fleet.caller({ partitions: { count: 2, consume: [1] } });
    const tasks = Array.from({ length: 12 }, (_, index) => fleet.task(index % 2 ? first.caller : second.caller));
    await fleet.assertOnce(await Promise.all(tasks));
  });

  verifies(
    'HCP-217',
    'adding a partition while events flow loses nothing and does nothing twice',
    async () => {
      await using fleet = await Fleet.create(stack());
      const single = await fleet.caller();
      const before = Array.from({ length: 6 }, () => fleet.task(single.caller));
      const wide = await fleet.caller({ partitions: { count: 1 } });
      const during = Array.from({ length: 6 }, () => fleet.task(wide.caller));
      const wider = await fleet.caller({ partitions: { count: 2 } });
      const after = Array.from({ length: 6 }, () => fleet.task(wider.caller));
      await fleet.assertOnce(await Promise.all([...before, ...during, ...after]));
    },
    90_000,
  );
});
