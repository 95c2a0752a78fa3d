import { expect } from 'vitest';
import { openStore } from '../../shared/store/open-store.ts';
import { connectAmqp } from '../../shared/transport/amqp/index.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { enter, entries, inOrder, LEDGER_TABLES } from '../support/ledger.ts';
import { Scene } from '../support/scene.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { verifies } from '../support/verifies.ts';

/** A link that can be cut. */
interface Link extends AsyncDisposable {
  readonly transport: Transport;
  /** Resolves when it is back. */
  cut(): Promise<void>;
}

async function breakableLink(stack: Stack): Promise<Link> {
  const { transportUrl } = stack;
  await using resources = new AsyncDisposableStack();
  if (!transportUrl.startsWith('amqp')) {
    const transport = resources.use(await stack.connect());
    const kept = resources.move();
    const cut = async () => {
      const [lost, back] = [becomes(transport, 'lost'), restored(transport)];
      const heal = await stack.stopBroker();
      await lost;
      await heal();
      await back;
    };
    return { transport, cut, [Symbol.asyncDispose]: () => kept.disposeAsync() };
  }
  const url = new URL(transportUrl);
  const proxy = resources.use(await startTcpProxy({ host: url.hostname, port: Number(url.port) }));
  url.port = String(proxy.port);
  const reconnect = { firstDelayMs: 50, maxDelayMs: 500 };
  const transport = resources.use(await connectAmqp({ url: url.href, reconnect }));
  const kept = resources.move();
  const cut = async () => {
    const back = restored(transport);
    proxy.resetAll();
    await back;
  };
  return { transport, cut, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

function becomes(transport: Transport, wanted: Transport['status']): Promise<void> {
  const there = Promise.withResolvers<void>();
  const unwatch = transport.watch((status) => {
    if (status !== wanted) return;
    unwatch();
    there.resolve();
  });
  return there.promise;
}

/** A link that came back after it was lost. */
function restored(transport: Transport): Promise<void> {
  const back = Promise.withResolvers<void>();
  let wasLost = false;
  const unwatch = transport.watch((status) => {
    if (status === 'lost') wasLost = true;
    if (status !== 'open' || !wasLost) return;
    unwatch();
    back.resolve();
  });
  return back.promise;
}

describeOnStacks('a caller that loses its link', (stack) => {
  for (const [what, isKilled] of [
    ['handles each of them once', false],
    ['loses none of them when it is killed then', true],
  ] as const) {
    verifies(['V-136', 'HCP-218', 'HCP-208'], `with five events in hand ${what}`, async () => {
      const { connect, storeUrl } = stack();
      await using link = await breakableLink(stack());
      await using scene = await Scene.open({
        connect,
        openStore: () => openStore(storeUrl, { tables: LEDGER_TABLES }),
      });
      const entered = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      let calls = 0;
      const { caller, sessionId } = await scene.following(0, {
        transport: link.transport,
        onEvent: async (event, tx) => {
          calls++;
          entered.resolve();
          await gate.promise;
          if (isKilled) throw new Error('Its process is gone');
          await enter(event, tx);
        },
      });
      await scene.callee.events(sessionId, 1, 2, 3, 4, 5);
      await entered.promise;
      await link.cut();
      // Behind the five that come again.
      await scene.callee.event(sessionId, 6);
      if (isKilled) {
        gate.resolve();
        await scene.clock.asked(100);
        await caller.close();
        await scene.caller({ onEvent: enter });
      }
      gate.resolve();
      await scene.reaches(sessionId, 6);
      expect(await entries(scene.store, sessionId)).toEqual(inOrder([1, 2, 3, 4, 5, 6]));
      if (!isKilled) {
        expect(calls).toBe(6);
        await caller.close();
        expect(await scene.unacked()).toEqual([]);
      }
    });
  }
});
