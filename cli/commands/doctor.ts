import { textOf } from '../arguments.ts';
import type { Call, Command, Io } from '../command.ts';
import { brokerFindings } from '../doctor/broker.ts';
import { type Finding, problem } from '../doctor/finding.ts';
import { fileFinding, nodeFinding } from '../doctor/machine.ts';
import { managementAccess, managementFindings } from '../doctor/management.ts';
import { mongoDbFindings } from '../doctor/mongodb.ts';
import { calleeRole, callerRole, type Role } from '../doctor/role.ts';
import { EXIT } from '../exit-codes.ts';
import { type Colour, jsonLine, paint, tame } from '../output.ts';
import { UsageError } from '../usage-error.ts';
import type { Workplace } from '../workplace.ts';

/** Looks at the place where commands would work, and says how to mend it. */
export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'check the machine, the file or the servers, and say what to mend; changes nothing',
  arguments: '[callee|caller]',
  arity: [0, 1],
  options: {
    management: {
      type: 'string',
      value: 'URL',
      about: "RabbitMQ's management plugin, for what AMQP does not tell: alarms, policies",
    },
  },
  examples: [
    'hcp doctor',
    'hcp doctor callee --amqp amqps://lab:…@broker/hcp --store mongodb://db/hcp?tls=true --callee-id lab',
    'hcp doctor --amqp amqp://localhost --management http://localhost:15672',
  ],
  async run(call) {
    if (textOf(call.values, 'management') !== undefined && isFile(call.workplace.transportUrl)) {
      throw new UsageError('--management goes with --amqp');
    }
    const findings = await unlessAborted(call.io.signal, examine(call, rolesOf(call)));
    report(call, findings);
    if (findings.some(({ unreachable }) => unreachable)) return EXIT.unreachable;
    return count(findings, 'problem') > 0 ? EXIT.failed : EXIT.ok;
  },
};

const SQLITE = 'sqlite:';
const isFile = (url: string) => url.startsWith(SQLITE);

const ROLES: Readonly<Record<string, (workplace: Workplace) => Role>> = {
  callee: ({ calleeId }) => calleeRole(calleeId),
  caller: ({ callerId }) => callerRole(callerId),
};

/** Whose queues and rights to look at. */
function rolesOf({ positionals: [wanted], workplace }: Call): readonly Role[] {
  const names = wanted === undefined ? Object.keys(ROLES) : [wanted];
  try {
    return names.map((name) => {
      const role = Object.hasOwn(ROLES, name) ? ROLES[name] : undefined;
      if (role === undefined) throw new UsageError('doctor takes callee, caller, or nothing for both');
      return role(workplace);
    });
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  }
}

async function examine(call: Call, roles: readonly Role[]): Promise<readonly Finding[]> {
  const { transportUrl, storeUrl, callerId } = call.workplace;
  const findings = [nodeFinding(process.versions.node)];
  const files = new Set([transportUrl, storeUrl].filter(isFile).map((url) => url.slice(SQLITE.length)));
  // Drivers are loaded when they are needed, so that nobody waits for those of servers they do not have.
  for (const file of files) {
    const { probeSqlite } = await import('../../shared/store/sqlite/probe.ts');
    findings.push(fileFinding(file, await probeSqlite(file)));
  }
  if (!isFile(transportUrl)) {
    const { probeBroker } = await import('../../shared/transport/amqp/probe.ts');
    findings.push(...(await brokerFindings(() => probeBroker(transportUrl), roles, callerId)));
    findings.push(...(await managed(call, roles)));
  }
  if (!isFile(storeUrl)) {
    const { probeMongoDb } = await import('../../shared/store/mongodb/probe.ts');
    findings.push(...(await mongoDbFindings(async () => probeMongoDb(storeUrl))));
  }
  return findings;
}

/** A server that is silent is waited for; whoever has waited enough shall not be. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const stop = () => aborted.reject(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

async function managed({ values, workplace }: Call, roles: readonly Role[]): Promise<readonly Finding[]> {
  const url = textOf(values, 'management');
  if (url === undefined) return [];
  try {
    return await managementFindings(managementAccess(url, workplace.transportUrl), roles);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return [problem('Management', error.message, 'Correct the URL of --management')];
  }
}

const COLOURS: Readonly<Record<Finding['status'], Colour>> = { ok: 'green', warning: 'yellow', problem: 'red' };

function report({ io, json }: Call, findings: readonly Finding[]): void {
  const [warnings, problems] = [count(findings, 'warning'), count(findings, 'problem')];
  if (json) {
    io.out(jsonLine({ findings, warnings, problems }));
    return;
  }
  for (const finding of findings) tell(io, finding);
  io.out(`${problems} problems, ${warnings} warnings`);
}

function tell(io: Io, { status, subject, message, fix }: Finding): void {
  io.out(`${paint(io, COLOURS[status], status.padEnd(7))}  ${tame(subject)}: ${tame(message)}`);
  if (fix !== undefined) io.out(`         fix: ${tame(fix)}`);
}

function count(findings: readonly Finding[], status: Finding['status']): number {
  return findings.filter((finding) => finding.status === status).length;
}
