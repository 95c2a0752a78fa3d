import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Delivery } from '../../shared/transport/transport.ts';
import { CalleeProcess } from '../support/callee-process.ts';
import { seededRandom } from '../support/random.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { World } from '../support/world.ts';

const KILLS = Number(process.env.HCP_KILLS ?? 20);
const SESSIONS = 5;
const MANY = 1000;
const TIME_LIMIT_MS = 120_000 + KILLS * 5000;

function startProcess({ transportUrl, storeUrl }: Stack, { calleeId, callerId }: World): CalleeProcess {
  return new CalleeProcess({ transportUrl, storeUrl, calleeId, callerId, instanceId: 'one', prefetch: 100 });
}

interface Heard {
  readonly sequence: number;
  readonly text: string;
  readonly closed: string | undefined;
}

/** What was heard of each session, in arrival order, repetitions included. */
function bySession(deliveries: readonly Delivery[]): Map<string, Heard[]> {
  const sessions = new Map<string, Heard[]>();
  for (const { body } of deliveries) {
    const text = Buffer.from(body).toString();
    const { type, session_id, payload } = JSON.parse(text);
    if (type !== 'event') continue;
    const closed = payload.event_type === 'session_closed' ? payload.data.final_state : undefined;
    sessions.set(session_id, [...(sessions.get(session_id) ?? []), { sequence: payload.sequence, text, closed }]);
  }
  return sessions;
}

/** The promise of the callee's log, seen from outside. */
function assertWhole(events: readonly Heard[]): void {
  const first = new Map<number, string>();
  for (const { sequence, text } of events) {
    expect(first.get(sequence) ?? text, `sequence ${sequence} has one content`).toBe(text);
    if (!first.has(sequence)) first.set(sequence, text);
  }
  expect([...first.keys()], 'no hole, first appearances in order').toEqual(
    Array.from({ length: first.size }, (_, index) => index + 1),
  );
  expect(events.flatMap(({ closed }) => closed ?? []).at(-1)).toBe('COMPLETED');
}

describeOnStacks('a callee that is killed again and again', (stack) => {
  verifies(
    ['HCP-111', 'HCP-112', 'HCP-113', 'V-16'],
    `completes every session after ${KILLS} SIGKILLs at random moments, without a hole or a number used twice`,
    async () => {
      const random = seededRandom('HCP_SEED');
      const folder = mkdtempSync(join(tmpdir(), 'hcp-kill-'));
      const enough = join(folder, 'enough');
      await using world = await World.create(stack());
      let callee = startProcess(stack(), world);
      try {
        await callee.ready();
        for (let i = 0; i < SESSIONS; i++) {
          await world.submit({ inputs: { script: [{ checkpoint: 'start' }, { workUntil: enough }] } });
        }
        // A session without its first checkpoint could not survive.
        const checkpointed = new Set<unknown>();
        while (checkpointed.size < SESSIONS) {
          const { type, session_id, payload } = await world.next();
          if (type === 'event' && payload.event_type === 'checkpoint_created') checkpointed.add(session_id);
        }
        for (let kill = 0; kill < KILLS; kill++) {
          // At work, or anywhere between its start and its work.
          if (random() < 0.7) await world.hearFresh(1 + Math.floor(random() * 40));
          else await delay(random() * 1200);
          await callee.kill();
          callee = startProcess(stack(), world);
        }
        writeFileSync(enough, '');
        await closedSessions(world, SESSIONS);
      } finally {
        await callee.kill();
        rmSync(folder, { recursive: true, force: true });
      }
      const sessions = bySession(world.received);
      expect(sessions.size).toBe(SESSIONS);
      for (const events of sessions.values()) assertWhole(events);
      const counts = [...sessions.values()].map((events) => events.at(-1)?.sequence);
      console.log(`kill: ${KILLS} kills, ${SESSIONS} sessions with ${counts.join(', ')} events (seed ${random.seed})`);
    },
    TIME_LIMIT_MS,
  );

  verifies(
    ['HCP-119', 'V-16'],
    `recovers ${MANY} open sessions before it takes a command`,
    async () => {
      await using world = await World.create(stack());
      await using first = startProcess(stack(), world);
      await first.ready();
      const script = [{ checkpoint: 'c' }, { hangUnlessResumed: true }];
      await Promise.all(Array.from({ length: MANY }, () => world.submit({ inputs: { script } })));
      for (let checkpoints = 0; checkpoints < MANY; ) {
        const { type, payload } = await world.next();
        if (type === 'event' && payload.event_type === 'checkpoint_created') checkpoints++;
      }
      await first.kill();
      await using second = startProcess(stack(), world);
      const recoveryMs = await second.ready();
      console.log(`recovery: ${MANY} open sessions in ${recoveryMs} ms`);
      await closedSessions(world, MANY);
      for (const events of bySession(world.received).values()) assertWhole(events);
    },
    240_000,
  );
});

async function closedSessions(world: World, count: number): Promise<void> {
  const closed = new Set<unknown>();
  while (closed.size < count) {
    const { type, session_id, payload } = await world.next();
    if (type === 'event' && payload.event_type === 'session_closed') closed.add(session_id);
  }
}
