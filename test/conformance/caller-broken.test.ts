import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { callerChecks } from '../../conformance/caller/index.ts';
import { runChecks } from '../../conformance/runner.ts';
import { connectSqlite } from '../../shared/transport/sqlite/index.ts';
import { disposableFolder } from '../shared/store/support/disposable-folder.ts';
import { BROKEN_CALLER, benchOn } from '../support/broken-caller-bench.ts';
import { CALLER_FLAWS, type CallerFlaw } from '../support/broken-caller-flaws.ts';

const LIMIT_MS = 60_000;

async function resultOf(check: string, flaw?: CallerFlaw) {
  using folder = disposableFolder();
  const path = join(folder.path, 'hcp.db');
  const url = `sqlite:${path}`;
  const stack = { transportUrl: url, storeUrl: url, connect: () => connectSqlite({ path }) };
  // Much longer than a good caller needs; what a broken one never does is waited for in full.
  const patience = { waitMs: flaw ? 3000 : 20_000 };
  const open = () => benchOn(stack, BROKEN_CALLER, { ...patience, ...(flaw && { flaw }) });
  const { results } = await runChecks(callerChecks, { subject: 'a caller', only: [check], open, timeoutMs: LIMIT_MS });
  expect(results).toHaveLength(1);
  return results[0];
}

describe('a caller that does one thing wrong', () => {
  // `keyof` is what Object.entries forgets.
  for (const [flaw, check] of Object.entries(CALLER_FLAWS) as [CallerFlaw, string][]) {
    it(
      `${flaw}: fails ${check}, which it passes otherwise`,
      async () => {
        expect(await resultOf(check)).toMatchObject({ status: 'passed' });
        const { status, message } = (await resultOf(check, flaw)) ?? {};
        expect(status).toBe('failed');
        expect(message).toMatch(/^[A-Z][^\n]+$/); // one sentence
      },
      LIMIT_MS,
    );
  }
});
