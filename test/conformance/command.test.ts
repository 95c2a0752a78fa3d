import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { EXIT } from '../../cli/exit-codes.ts';
import { contractChecks } from '../../conformance/contracts.ts';
import { openStore } from '../../shared/store/open-store.ts';
import { connectSqlite } from '../../shared/transport/sqlite/index.ts';
import { storeContract } from '../../testing/store-contract/index.ts';
import { transportContract } from '../../testing/transport-contract/index.ts';
import { disposableFolder } from '../shared/store/support/disposable-folder.ts';
import { memoryHarness } from '../shared/store/support/harnesses.ts';
import { BROKEN_CALLER, OUR_CALLER } from '../support/broken-caller-bench.ts';
import { runHcp, startHcp } from '../support/cli.ts';
import { serveConformance } from '../support/conformance-callee.ts';
import { memoryFixture } from '../support/memory-harness.ts';

const LIMIT_MS = 120_000;
const folder = disposableFolder();
afterAll(() => folder[Symbol.dispose]());

const fileIn = (name: string) => join(folder.path, name);
const root = new URL('../../', import.meta.url);
let modules = 0;

/** A module with this text, which may import from the checkout by `ROOT/…`. */
function moduleOf(text: string): string {
  const path = fileIn(`harness-${modules++}.ts`);
  writeFileSync(path, text.replaceAll('ROOT/', root.href));
  return path;
}

const SQLITE_STORE = `
  import { sqliteHarness } from 'ROOT/test/shared/store/support/harnesses.ts';
  export const harness = sqliteHarness;`;

/** Forgets to look at its conditions. */
const BROKEN_STORE = `
  import { memoryHarness } from 'ROOT/test/shared/store/support/harnesses.ts';
  const good = memoryHarness();
  const unconditional = (writes) => writes.map(({ if: _, ...write }) => write);
  export const harness = {
    ...good,
    open: async (tables) => {
      const store = await good.open(tables);
      return { ...store, commit: (writes) => store.commit(unconditional(writes)) };
    },
  };`;

const MEMORY_TRANSPORT = `
  import { serveConformance } from '../support/conformance-callee.ts';
import { memoryFixture } from 'ROOT/test/support/memory-harness.ts';
  export const harness = () => memoryFixture().start();`;

/** Says of everything that it arrived. */
const BROKEN_TRANSPORT = `
  import { serveConformance } from '../support/conformance-callee.ts';
import { memoryFixture } from 'ROOT/test/support/memory-harness.ts';
  export async function harness() {
    const good = await memoryFixture().start();
    const open = async (options) => {
      const transport = await good.open(options);
      const publish = async (...given) => {
        await transport.publish(...given);
        return 'confirmed';
      };
      return new Proxy(transport, {
        get: (target, name) => (name === 'publish' ? publish : typeof target[name] === 'function' ? target[name].bind(target) : target[name]),
      });
    };
    return { ...good, open };
  }`;

const last = (lines: readonly string[]) => lines.at(-1);

describe('hcp conformance store', () => {
  it(
    'passes our SQLite store',
    async () => {
      const { code, out, err } = await runHcp(['conformance', 'store', moduleOf(SQLITE_STORE)]);
      expect([code, last(out)], out.join('\n')).toEqual([
        EXIT.ok,
        expect.stringMatching(/^\d\d+ passed, 0 failed, 0 skip/),
      ]);
      expect(err.every((line) => /^passed {2}store\/[a-z0-9-]+$/.test(line))).toBe(true);
    },
    LIMIT_MS,
  );

  it(
    'fails a store that does not look at conditions',
    async () => {
      const { code, out } = await runHcp(['conformance', 'store', moduleOf(BROKEN_STORE)]);
      expect(code).toBe(EXIT.failed);
      expect(out.some((line) => line.startsWith('FAILED store/'))).toBe(true);
      expect(last(out)).toMatch(/^\d+ passed, [1-9]\d* failed, \d+ skipped$/);
    },
    LIMIT_MS,
  );
});

describe('hcp conformance transport', () => {
  it(
    'passes our memory transport, with a JUnit report in a file',
    async () => {
      const report = fileIn('report.xml');
      const argv = ['conformance', 'transport', moduleOf(MEMORY_TRANSPORT), '--report', 'junit', '--out', report];
      const { code, out, err } = await runHcp(argv);
      expect(code, err.join('\n')).toBe(EXIT.ok);
      expect(out).toEqual([]);
      expect(readFileSync(report, 'utf8')).toMatch(
        /^<\?xml .*\n<testsuites name="transport .*" tests="\d+" failures="0"/,
      );
    },
    LIMIT_MS,
  );

  it(
    'fails a transport that confirms what went nowhere',
    async () => {
      const { code, out } = await runHcp(['conformance', 'transport', moduleOf(BROKEN_TRANSPORT), '--json']);
      const report = JSON.parse(out.join('\n'));
      expect([code, out.length]).toEqual([EXIT.failed, 1]);
      const failed = report.results.filter(({ status }: { status: string }) => status === 'failed');
      expect(failed.map(({ title }: { title: string }) => title).join()).toMatch(/unroutable|no queue|nowhere/i);
    },
    LIMIT_MS,
  );
});

describe('the contracts as checks', () => {
  it('have ids of their own', async () => {
    await using transport = await memoryFixture().start();
    for (const checks of [
      contractChecks('store', storeContract(memoryHarness())),
      contractChecks('transport', transportContract(transport)),
    ]) {
      expect(new Set(checks.map(({ id }) => id)).size).toBe(checks.length);
    }
  });
});

describe('hcp conformance caller', () => {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HCP_')));
  const start = (command: string, ...more: string[]) =>
    startHcp(['conformance', 'caller', '--db', fileIn('hcp.db'), '--caller-command', command, ...more], {
      env: env as Record<string, string>, // none of them is undefined
    });

  it(
    'checks our own caller in a file, the checks that were asked for only',
    async () => {
      const only = ['--only', 'V-104', '--only', 'caller/restarts/in-hand', '--only', 'aborts'];
      const { code, out } = await start(OUR_CALLER, ...only).ended;
      expect([code, last(out)], out.join('\n')).toEqual([EXIT.ok, '8 passed, 0 failed, 0 skipped']);
    },
    LIMIT_MS,
  );

  it(
    'tells why a caller failed',
    async () => {
      const only = ['--only', 'caller/order/reordered', '--timeout-ms', '20000'];
      const { code, out } = await start(`HCP_FLAW=ignores-order; export HCP_FLAW; ${BROKEN_CALLER}`, ...only).ended;
      expect(code).toBe(EXIT.failed);
      expect(out).toContain('FAILED caller/order/reordered [HCP-210, V-104]');
      expect(out.join('\n')).toContain('The handler should have seen events 1, 2, 3, 4, 5, 6, 7, and saw');
    },
    LIMIT_MS,
  );

  it(
    'tells that a command ended, and what it said',
    async () => {
      const { code, out } = await start('echo "no such thing" >&2; exit 7', '--only', 'V-101').ended;
      expect(code).toBe(EXIT.failed);
      expect(out.join('\n')).toContain('The caller ended by itself (exit code 7: no such thing)');
    },
    LIMIT_MS,
  );

  it(
    'stops on Ctrl-C, in the midst of a check',
    async () => {
      const mark = fileIn('begun');
      const running = start(`touch '${mark}'; sleep 1000`, '--timeout-ms', '600000');
      await vi.waitFor(() => expect(existsSync(mark)).toBe(true), LIMIT_MS);
      expect(await running.stop()).toMatchObject({ code: EXIT.interrupted });
    },
    LIMIT_MS,
  );
});

describe('hcp conformance callee', () => {
  it('checks a callee in a file, and skips what needs a restart', async () => {
    const path = fileIn('callee.db');
    await using transport = await connectSqlite({ path });
    await using store = await openStore(`sqlite:${path}`);
    await using _callee = await serveConformance({ calleeId: 'lab', transport, store });
    const only = ['--only', 'callee/lifecycle/complete', '--only', 'restart'];
    const { code, out } = await runHcp(['conformance', 'callee', '--db', path, '--callee-id', 'lab', ...only]);
    expect(code, out.join('\n')).toBe(EXIT.ok);
    expect(last(out)).toMatch(/^1 passed, 0 failed, [1-9]\d* skipped$/);
  }, 60_000);

  it('fails where nobody is', async () => {
    const argv = ['conformance', 'callee', '--db', fileIn('nobody.db'), '--only', 'callee/lifecycle/complete'];
    const { code, out } = await runHcp([...argv, '--timeout-ms', '2000']);
    expect([code, last(out)]).toEqual([EXIT.failed, '0 passed, 1 failed, 0 skipped']);
  }, 60_000);
});

describe('hcp conformance', () => {
  it.each([
    [['caller'], /needs --caller-command/],
    [['store', '/no/such/module.ts'], /cannot be imported/],
    [['store', moduleOf('export const other = 1;')], /must export harness, a StoreHarness/],
    [['store', moduleOf(SQLITE_STORE), '--only', 'no-such-thing'], /no check, family or requirement no-such-thing/],
    [['store', moduleOf(SQLITE_STORE), '--report', 'pdf'], /--report must be one of text, json, junit/],
    [['store', moduleOf(SQLITE_STORE), '--timeout-ms', 'soon'], /--timeout-ms must be a number/],
  ])('refuses %j in one sentence', async (argv, sentence) => {
    const { code, err } = await runHcp(['conformance', ...argv]);
    expect([code, err.length]).toEqual([EXIT.usage, 1]);
    expect(err[0]).toMatch(sentence);
  });
});
