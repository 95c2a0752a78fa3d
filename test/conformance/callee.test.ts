import { beforeAll, describe, expect, it } from 'vitest';
import { calleeChecks, openCalleeBench } from '../../conformance/callee/index.ts';
import { type CheckResult, runChecks } from '../../conformance/index.ts';
import { freshCalleeId, SupervisedCallee, serveConformance } from '../support/conformance-callee.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';

const LIMIT_MS = 300_000;

async function tryAll(
  stack: Stack,
  subject: { readonly calleeId: string; readonly restartCommand?: string },
): Promise<readonly CheckResult[]> {
  const { calleeId } = subject;
  await using transport = await stack.connect();
  const { results } = await runChecks(calleeChecks, {
    subject: `callee ${calleeId}`,
    // The machine may be busy with other things.
    open: () => openCalleeBench({ ...subject, transport, strangerId: `stranger-${calleeId}`, waitMs: 15_000 }),
    timeoutMs: 60_000,
  });
  return results;
}

/** In this process, or on servers in one of its own that can be killed. */
async function tryOn(stack: Stack): Promise<readonly CheckResult[]> {
  if (stack.transportUrl.startsWith('amqp')) {
    await using callee = await SupervisedCallee.start(stack);
    const { calleeId, restartCommand } = callee;
    return await tryAll(stack, { calleeId, restartCommand });
  }
  const calleeId = freshCalleeId();
  await using transport = await stack.connect();
  await using store = await stack.openStore();
  await using _callee = await serveConformance({ calleeId, transport, store });
  return await tryAll(stack, { calleeId });
}

describeOnStacks('our own callee', (stack) => {
  let results: readonly CheckResult[] = [];
  beforeAll(async () => {
    results = await tryOn(stack());
    const count = (wanted: string) => results.filter(({ status }) => status === wanted).length;
    const took = Math.round(results.reduce((sum, { durationMs }) => sum + durationMs, 0) / 1000);
    console.info(`${results.length} checks in ${took} s: ${count('failed')} failed, ${count('skipped')} skipped`);
  }, LIMIT_MS);

  for (const { id, requirements, title } of calleeChecks) {
    it(`${title} (${id}) [${requirements.join(', ')}]`, ({ skip }) => {
      const { status, message } = results.find((result) => result.id === id) ?? {};
      skip(message === 'It needs a restart command' && !stack().transportUrl.startsWith('amqp'), message);
      expect({ status, message }).toEqual({ status: 'passed', message: undefined });
    });
  }
});

describe('the checks of a callee', () => {
  it('have names of their own, a sentence and something they prove', () => {
    expect(new Set(calleeChecks.map(({ id }) => id)).size).toBe(calleeChecks.length);
    expect(calleeChecks.length).toBeGreaterThanOrEqual(110);
    for (const { id, family, title, requirements } of calleeChecks) {
      expect(id).toMatch(new RegExp(`^callee/${family}/[a-z0-9-]+$`));
      expect(title, id).toMatch(/^[A-Za-z#*_-].+[^.]$/);
      expect(requirements.length, id).toBeGreaterThan(0);
    }
  });
});
