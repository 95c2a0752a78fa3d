import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { calleeChecks, openCalleeBench } from '../../conformance/callee/index.ts';
import { callerChecks, openCallerBench } from '../../conformance/caller/index.ts';
import type { Check, CheckResult } from '../../conformance/check.ts';
import { contractChecks, longestCaseMs } from '../../conformance/contracts.ts';
import { formatReport, REPORT_FORMATS, type ReportFormat, totalsOf } from '../../conformance/report.ts';
import { type RunOptions, runChecks } from '../../conformance/runner.ts';
import { scrubUrls } from '../../shared/logger.ts';
import type { ContractCase } from '../../testing/contract.ts';
import { storeContract } from '../../testing/store-contract/index.ts';
import { transportContract } from '../../testing/transport-contract/index.ts';
import { countOf, textOf, textsOf } from '../arguments.ts';
import type { Call, Command, OptionSpec } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { writeOutput } from '../files.ts';
import { paint, tame } from '../output.ts';
import { UsageError } from '../usage-error.ts';

const REPORTING = {
  only: { type: 'string', multiple: true, value: 'NAME', about: 'only this check, family or requirement; repeatable' },
  report: { type: 'string', value: 'FORMAT', about: 'text, json or junit (text)' },
  out: { type: 'string', value: 'FILE', about: 'write the report there' },
  'timeout-ms': { type: 'string', value: 'N', about: 'how long one check may take' },
} as const satisfies Record<string, OptionSpec>;

const CHECK_MS = 30_000;
/** Of the time of a check, so that a wait tells what was missing before the check is over. */
const WAIT_SHARE = 0.5;

const calleeCommand: Command = {
  name: 'conformance callee',
  summary: 'check a callee, in any language, that offers hcp.conformance',
  options: {
    'restart-command': { type: 'string', value: 'CMD', about: 'kills the callee and starts it again' },
    'stranger-id': { type: 'string', value: 'ID', about: 'a caller the callee does not serve' },
    ...REPORTING,
  },
  examples: [
    'hcp conformance callee --amqp amqp://localhost --callee-id lab',
    'hcp conformance callee --callee-id lab --only abort --report junit --out report.xml',
  ],
  async run(call) {
    const { values, workplace } = call;
    const { timeoutMs, waitMs } = timesOf(call);
    const named = { callerId: textOf(values, 'caller-id'), strangerId: textOf(values, 'stranger-id') };
    const restartCommand = textOf(values, 'restart-command');
    const transport = await workplace.transport();
    return check(call, calleeChecks, {
      subject: `callee ${workplace.calleeId}`,
      timeoutMs,
      open: () =>
        openCalleeBench({
          ...{ transport, calleeId: workplace.calleeId, waitMs },
          ...(named.callerId !== undefined && { callerId: named.callerId }),
          ...(named.strangerId !== undefined && { strangerId: named.strangerId }),
          ...(restartCommand !== undefined && { restartCommand }),
        }),
    });
  },
};

const callerCommand: Command = {
  name: 'conformance caller',
  summary: 'check a caller, in any language, that a command starts',
  options: {
    'caller-command': { type: 'string', value: 'CMD', about: 'starts the caller (docs/conformance.md)' },
    ...REPORTING,
  },
  examples: [
    'hcp conformance caller --amqp amqp://localhost --caller-command "python my_caller.py"',
    'hcp conformance caller --caller-command ./my-caller --only restarts --only V-104',
  ],
  async run(call) {
    const { values, workplace, io } = call;
    const command = textOf(values, 'caller-command');
    if (command === undefined) throw new UsageError('conformance caller needs --caller-command');
    const { timeoutMs, waitMs } = timesOf(call);
    const transport = await workplace.transport();
    const ids = { calleeId: textOf(values, 'callee-id'), callerId: textOf(values, 'caller-id') };
    return check(call, callerChecks, {
      subject: `caller ${scrubUrls(command)}`,
      timeoutMs,
      open: () =>
        openCallerBench({
          ...{ transport, command, waitMs, env: placeOf(call), signal: io.signal },
          ...(ids.calleeId !== undefined && { calleeId: ids.calleeId }),
          ...(ids.callerId !== undefined && { callerId: ids.callerId }),
        }),
    });
  },
};

const storeCommand = contractCommand('store', 'StoreHarness', storeContract);
const transportCommand = contractCommand('transport', 'TransportHarness', transportContract);

/** The kit: what others build, checked from outside. */
export const conformanceCommands: readonly Command[] = [calleeCommand, callerCommand, storeCommand, transportCommand];

/** A command that runs a contract of an adapter on the harness a module exports. */
function contractCommand<Harness>(
  contract: 'store' | 'transport',
  harnessName: string,
  casesOf: (harness: Harness) => readonly ContractCase[],
): Command {
  return {
    name: `conformance ${contract}`,
    summary: `check a ${contract} of your own by the contract of this SDK`,
    arguments: '<module>',
    arity: [1, 1],
    isOffline: true,
    options: REPORTING,
    examples: [`hcp conformance ${contract} ./my-${contract}-harness.js`],
    async run(call) {
      const [path = ''] = call.positionals;
      const harness = await importHarness(path, harnessName);
      await using _closed = isDisposable(harness) ? harness : undefined;
      // What is wrong with it shows by the first case that uses it.
      const cases = casesOf(harness as Harness);
      return check(call, contractChecks(contract, cases), {
        subject: `${contract} ${path}`,
        timeoutMs: countOf(call.values, 'timeout-ms') ?? longestCaseMs(cases),
        open: async () => ({ async [Symbol.asyncDispose]() {} }),
      });
    },
  };
}

/** Runs the checks, tells each on stderr as it ends, and reports. */
async function check<Bench>(
  { values, json, io }: Call,
  checks: readonly Check<Bench>[],
  options: RunOptions<Bench>,
): Promise<ExitCode> {
  const format = json ? 'json' : formatOf(values.report);
  const only = textsOf(values, 'only');
  const onResult = (result: CheckResult) => {
    if (!json) io.err(`${paint(io, COLOURS[result.status], result.status.padEnd(7))} ${result.id}`);
  };
  const report = await runChecks(checks, { ...options, only, onResult, signal: io.signal });
  if (report.results.length === 0) throw new UsageError(`There is no check, family or requirement ${only.join(', ')}`);
  const text = formatReport(report, format);
  const out = textOf(values, 'out');
  if (out === undefined) for (const line of text.split('\n')) io.out(format === 'text' ? tame(line) : line);
  else await writeOutput(out, `${text}\n`);
  io.signal.throwIfAborted();
  return totalsOf(report.results).failed === 0 ? EXIT.ok : EXIT.failed;
}

const COLOURS = { passed: 'green', failed: 'red', skipped: 'yellow' } as const;

function formatOf(value: Call['values'][string]): ReportFormat {
  const format = REPORT_FORMATS.find((name) => name === (value ?? 'text'));
  if (format === undefined) throw new UsageError(`--report must be one of ${REPORT_FORMATS.join(', ')}`);
  return format;
}

function timesOf({ values }: Call): { readonly timeoutMs: number; readonly waitMs: number } {
  const timeoutMs = countOf(values, 'timeout-ms') ?? CHECK_MS;
  return { timeoutMs, waitMs: Math.ceil(timeoutMs * WAIT_SHARE) };
}

/** Tells a caller under test where the broker is: by one variable, whatever else the environment says. */
function placeOf({ io, values, workplace: { transportUrl } }: Call): NodeJS.ProcessEnv {
  const { HCP_AMQP_URL: _amqp, HCP_DB: _db, ...env } = io.env;
  const path = /^sqlite:(.*)$/s.exec(transportUrl)?.[1];
  const store = textOf(values, 'store');
  return {
    ...env,
    ...(path === undefined ? { HCP_AMQP_URL: transportUrl } : { HCP_DB: resolve(path) }),
    ...(store !== undefined && { HCP_STORE_URL: store }),
  };
}

/** `export const harness`, or a function of this name that makes one. */
async function importHarness(path: string, type: string): Promise<object> {
  const { harness } = await importModule(path);
  const made: unknown = typeof harness === 'function' ? await harness() : harness;
  if (typeof made === 'object' && made !== null) return made;
  throw new UsageError(`${path} must export harness, a ${type} or a function that makes one`);
}

async function importModule(path: string): Promise<{ readonly harness?: unknown }> {
  try {
    return await import(pathToFileURL(resolve(path)).href);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${path} cannot be imported: ${why}`);
  }
}

function isDisposable(value: object): value is AsyncDisposable {
  return Symbol.asyncDispose in value;
}
