import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { acceptKnownCallers, createCallee, type Executor } from '../../callee/index.ts';
import { openStore } from '../../shared/store/open-store.ts';
import { CallerProcess, type CallerProcessOptions } from '../support/caller-process.ts';
import { bothSides, entries, inOrder, LEDGER_TABLES } from '../support/ledger.ts';
import { seededRandom } from '../support/random.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK } from '../support/world.ts';

const KILLS = Number(process.env.HCP_KILLS ?? 20);
const SESSIONS = 20;
const EVENTS = 60;
/** Besides its progress a session tells of its creation, its start and its end (twice). */
const ALL = EVENTS + 4;

/** A real callee in this process, and callers in processes of their own. */
async function stage(stack: Stack, executor: Executor) {
  await using resources = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'hcp-crash-'));
  resources.defer(() => rmSync(folder, { recursive: true, force: true }));
  const id = randomBytes(4).toString('hex');
  const [callerId, calleeId, file] = [`alpha-${id}`, `lab-${id}`, join(folder, 'handled')];
  const transport = resources.use(await stack.connect());
  const store = resources.use(await openStore(stack.storeUrl, { tables: LEDGER_TABLES }));
  const policy = acceptKnownCallers([callerId]);
  const callee = resources.use(createCallee({ calleeId, policy, transport, store, closeTimeoutMs: 2000 }));
  callee.capability(TASK, executor);
  await callee.start();
  const { transportUrl, storeUrl } = stack;
  const common = { transportUrl, storeUrl, callerId, calleeId, file, submits: 0, sessionIds: [] };
  const kept = resources.move();
  return {
    caller: (options: Partial<CallerProcessOptions>) => kept.use(new CallerProcess({ ...common, ...options })),
    handled: () => readFileSync(file, 'utf8').trim().split('\n'),
    entries: (sessionId: string) => entries(store, sessionId),
    bothSides: (sessionId: string) => bothSides(store, sessionId),
    holes: async (sessionId: string) => (await store.get('follows', [callerId, sessionId]))?.holes,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function idsOf(lines: readonly string[]): string[] {
  return lines.map((line) => line.slice('session '.length));
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

const three: Executor = async (_, run) => {
  for (const message of ['one', 'two', 'three']) await run.progress({ stage: 'counting', message });
  return { outputs: {} };
};

describeOnStacks('a caller that is killed', (stack) => {
  for (const [vector, when, isHandledAgain] of [
    ['V-102', 'handled', true],
    ['V-103', 'committed', false],
  ] as const) {
    verifies([vector, 'HCP-215', 'HCP-216'], `when event 4 is ${when}: its effect is there once`, async () => {
      await using scene = await stage(stack(), three);
      const first = scene.caller({ submits: 1, dies: { when, sequence: 4 } });
      const sessionIds = idsOf(await first.said('session'));
      await first.exited;
      // Of one life nothing can be told by counting: the engine may have run its transaction more than once.
      const before = scene.handled().length;
      const second = scene.caller({ sessionIds, dies: { when, sequence: 4 } });
      await second.said('done');
      const [sessionId] = sessionIds;
      expect(await scene.entries(String(sessionId))).toEqual(inOrder(upTo(7)));
      expect(scene.handled().slice(before).includes(`${sessionId} 4`)).toBe(isHandledAgain);
    });
  }

  verifies(
    ['V-102', 'V-103', 'HCP-209', 'HCP-215', 'HCP-216'],
    `${KILLS} times at random moments has in its ledger what the callee logged, row for row`,
    async () => {
      const random = seededRandom('HCP_SEED');
      let permits = 0;
      let wake = Promise.withResolvers<void>();
      const streaming: Executor = async (_, run) => {
        for (let count = 0; count < EVENTS; count++) {
          while (count >= permits) await wake.promise;
          await run.progress({ stage: 'streaming', message: String(count) });
        }
        return { outputs: {} };
      };
      await using scene = await stage(stack(), streaming);
      const first = scene.caller({ submits: SESSIONS });
      const sessionIds = idsOf(await first.said('session', SESSIONS));
      let caller = first;
      for (let kill = 1; kill <= KILLS; kill++) {
        permits = Math.ceil((EVENTS * kill) / KILLS);
        wake.resolve();
        wake = Promise.withResolvers();
        // Somewhere between its start and the end of its work.
        await delay(random() * 400);
        await caller.kill();
        caller = scene.caller({ sessionIds });
        if (random() < 0.8) await caller.said('ready');
      }
      await caller.said('done');
      for (const sessionId of sessionIds) {
        expect(await scene.entries(sessionId), `seed ${random.seed}`).toEqual(inOrder(upTo(ALL)));
        expect(await scene.holes(sessionId)).toBe('[]');
        const { ledger, log } = await scene.bothSides(sessionId);
        expect(ledger).toEqual(log);
      }
      const handled = scene.handled();
      expect(new Set(handled).size).toBe(SESSIONS * ALL);
      const again = handled.length - SESSIONS * ALL;
      console.log(`crash: ${KILLS} kills, ${SESSIONS * ALL} events, ${again} handled again (seed ${random.seed})`);
    },
    120_000 + KILLS * 5000,
  );
});
