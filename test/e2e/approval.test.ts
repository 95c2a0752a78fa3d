import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, type Callee } from '../../callee/index.ts';
import { type Caller, createCaller, type PendingApproval, type Task } from '../../caller/index.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { Store } from '../../shared/store/store.ts';
import { approvalRow, counting, serveRisky } from '../support/approval-room.ts';
import { isPending } from '../support/caller-room.ts';
import { bothSides, enter, entries, inOrder, LEDGER_TABLES } from '../support/ledger.ts';
import { Recorder } from '../support/recorder.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { World } from '../support/world.ts';

const DO_IT: Task = { capability: 'test.task', intent: 'Do it', inputs: { level: 'R4' } };

/** A real caller with a ledger, and real callees that let a human decide about its tasks. */
class Scene implements AsyncDisposable {
  readonly callerId = `alpha-${randomBytes(4).toString('hex')}`;
  readonly pending = new Recorder<PendingApproval>();
  readonly work = counting();
  readonly #resources = new AsyncDisposableStack();
  world!: World;
  store!: Store;
  caller!: Caller;

  static async open(stack: Stack): Promise<Scene> {
    const scene = new Scene();
    scene.world = scene.#resources.use(await World.create(stack));
    scene.store = scene.#resources.use(await openStore(stack.storeUrl, { tables: LEDGER_TABLES }));
    const { callerId, store, pending } = scene;
    const transport = await scene.world.connect();
    const caller = createCaller({ callerId, transport, store, onEvent: enter, onApprovalPending: pending.add });
    scene.caller = scene.#resources.use(caller);
    await scene.caller.start();
    return scene;
  }

  callee(): Promise<Callee> {
    const policy = acceptKnownCallers({ [this.callerId]: { riskLimit: 'R5' } });
    return serveRisky(this.world, { policy }, { executor: this.work.executor });
  }

  /** Submits, and hears that a human decides. */
  async ask(signal?: AbortSignal) {
    const { calleeId } = this.world;
    const submitted = this.caller.submit(DO_IT, { calleeId, ...(signal && { signal }) });
    submitted.catch(() => {});
    const [told] = (await this.pending.count(1)) as [PendingApproval]; // there is one now
    return { submitted, told };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

describeOnStacks('a caller and a callee with a human between them', (stack) => {
  verifies(['V-24', 'P3'], 'the submit waits for the human, and every event is handled once', async () => {
    await using scene = await Scene.open(stack());
    const callee = await scene.callee();
    const { submitted, told } = await scene.ask();
    const [listed] = await callee.approvals.list();
    expect(told).toMatchObject({ sessionId: listed?.sessionId, expiresAt: listed?.expiresAt, riskLevel: 'R4' });
    expect(await isPending(submitted)).toBe(true);
    expect(scene.work.runs).toEqual([]);
    await callee.approvals.approve(told.sessionId, { approver: 'ada' });
    const session = await submitted;
    expect(session.sessionId).toBe(told.sessionId);
    expect(await session.result()).toMatchObject({ status: 'completed' });
    expect(scene.work.runs).toEqual([told.sessionId]);
    expect(scene.pending.all).toHaveLength(1);
    expect(await entries(scene.store, told.sessionId)).toEqual(inOrder([1, 2, 3, 4, 5]));
    const { ledger, log } = await bothSides(scene.store, told.sessionId);
    expect(ledger).toEqual(log);
  });

  verifies(['V-25', 'P3'], 'a denial is the answer to the submit', async () => {
    await using scene = await Scene.open(stack());
    const callee = await scene.callee();
    const { submitted, told } = await scene.ask();
    await callee.approvals.deny(told.sessionId, { approver: 'ada', comment: 'not at night' });
    const session = await submitted;
    expect(session.sessionId).toBeUndefined();
    expect(await session.result()).toMatchObject({
      status: 'rejected',
      reasonCode: 'approval_denied',
      reasonMessage: 'The task was denied: not at night',
    });
    expect(await entries(scene.store, told.sessionId)).toEqual([]);
    expect(scene.work.runs).toEqual([]);
  });

  verifies(['V-70', 'P3'], 'a submit that is given up withdraws its task', async () => {
    await using scene = await Scene.open(stack());
    const callee = await scene.callee();
    const patience = new AbortController();
    const { submitted, told } = await scene.ask(patience.signal);
    patience.abort(new Error('out of patience'));
    await expect(submitted).rejects.toThrow('out of patience');
    await approvalRow(scene.world, told.sessionId, ({ status }) => status === 'withdrawn');
    expect(await callee.approvals.list()).toEqual([]);
    expect(scene.work.runs).toEqual([]);
  });

  verifies(['V-24', 'HCP-119'], 'a callee that is restarted meanwhile makes no difference', async () => {
    await using scene = await Scene.open(stack());
    const first = await scene.callee();
    const { submitted, told } = await scene.ask();
    await first.close();
    const second = await scene.callee();
    await second.approvals.approve(told.sessionId, { approver: 'ada' });
    const session = await submitted;
    expect(await session.result()).toMatchObject({ status: 'completed' });
    expect(scene.work.runs).toEqual([told.sessionId]);
    expect(await entries(scene.store, told.sessionId)).toEqual(inOrder([1, 2, 3, 4, 5]));
    expect(scene.pending.all).toHaveLength(1);
  });
});
