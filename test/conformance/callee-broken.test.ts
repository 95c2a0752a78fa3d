import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CalleeBenchOptions, calleeChecks, openCalleeBench } from '../../conformance/callee/index.ts';
import { type CheckResult, runChecks } from '../../conformance/index.ts';
import { createMemoryStore } from '../../shared/store/memory/index.ts';
import { connectMemory, MemoryBroker } from '../../shared/transport/memory/index.ts';
import { connectSqlite } from '../../shared/transport/sqlite/index.ts';
import { type Fault, tampered } from '../support/broken-callee.ts';
import { CONDUCT_FAULTS } from '../support/broken-callee-conduct.ts';
import { SPEECH_FAULTS } from '../support/broken-callee-speech.ts';
import { freshCalleeId, SupervisedCallee, serveConformance } from '../support/conformance-callee.ts';

const BROKEN_CALLEES = [...SPEECH_FAULTS, ...CONDUCT_FAULTS];

/** What these checks say of a callee with that fault. */
async function tryFault(
  fault: Fault,
  only: readonly string[],
  more: Partial<CalleeBenchOptions>,
): Promise<readonly CheckResult[]> {
  const calleeId = freshCalleeId();
  const broker = new MemoryBroker();
  await using link = await connectMemory({ broker });
  await using transport = tampered(await connectMemory({ broker }), fault);
  await using store = createMemoryStore();
  await using _callee = await serveConformance({ calleeId, transport, store });
  const { results } = await runChecks(calleeChecks, {
    subject: `callee ${calleeId}`,
    open: () => openCalleeBench({ transport: link, calleeId, strangerId: 'stranger', quietMs: 50, ...more }),
    timeoutMs: 20_000,
    only,
  });
  return results;
}

const statuses = (results: readonly CheckResult[]) => results.map(({ id, status }) => `${id} ${status}`).sort();

describe('a broken callee is caught when it', () => {
  for (const { does, caughtBy, fault, isSilent = false } of BROKEN_CALLEES) {
    it(`${does} (${caughtBy.join(', ')})`, async () => {
      const results = await tryFault(fault(), caughtBy, { waitMs: isSilent ? 600 : 10_000 });
      expect(statuses(results)).toEqual(caughtBy.map((id) => `${id} failed`).sort());
      // What was said is at fault, not the time it took.
      const late = results.filter(({ message }) => message?.startsWith('Waited'));
      if (!isSilent) expect(late).toEqual([]);
    });
  }

  it('does nothing wrong, by none of these checks', async () => {
    const results = await tryFault({}, [...new Set(BROKEN_CALLEES.flatMap(({ caughtBy }) => caughtBy))], {
      waitMs: 10_000,
    });
    expect(results.filter(({ status }) => status !== 'passed')).toEqual([]);
  });

  it('does nothing wrong to a caller that is always the same', async () => {
    const only = ['lifecycle', 'duplicates', 'isolation', 'topology'];
    const results = await tryFault({}, only, { waitMs: 10_000, callerId: 'conformance-always' });
    const odd = results.filter(({ status }) => status !== 'passed').map(({ id, message }) => [id, message]);
    const reason = 'The callee serves only one caller of the kit';
    const alone = ['topology/only-its-caller', 'topology/offline', 'duplicates/other-caller', 'isolation/callers'];
    expect(odd).toEqual(alone.map((name) => [`callee/${name}`, reason]));
  });

  it('forgets everything in a restart (callee/restart/finished)', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hcp-forgetful-'));
    const path = join(folder, 'queues.db');
    try {
      await using callee = await SupervisedCallee.start({ transportUrl: `sqlite:${path}`, storeUrl: 'memory:' });
      await using transport = await connectSqlite({ path });
      const { calleeId, restartCommand } = callee;
      const { results } = await runChecks(calleeChecks, {
        subject: `callee ${calleeId}`,
        open: () => openCalleeBench({ transport, calleeId, restartCommand }),
        only: ['callee/restart/finished'],
      });
      expect(results.map(({ message }) => message)).toEqual(['The answer is not the one from before']);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('has a fault of any family', () => {
    const caught = new Set(BROKEN_CALLEES.flatMap(({ caughtBy }) => caughtBy.map((id) => id.split('/')[1])));
    const families = new Set(calleeChecks.map(({ family }) => family));
    expect([...families].filter((family) => !caught.has(family))).toEqual(['restart']); // above
  });
});
