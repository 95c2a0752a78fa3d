import { parseHarnessId } from '../../shared/ids.ts';
import type { BrokerFacts, BrokerProbe, DeedOutcome, QueueState } from '../../shared/transport/amqp/probe.ts';
import {
  commandQueue,
  deadLetterQueue,
  type ExchangeName,
  eventQueue,
  type QueueDeclaration,
  type QueueProfile,
} from '../../shared/transport/topology.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

/** A harness as the broker sees it: the queue it reads, the exchange it publishes to. */
export interface Role {
  readonly name: 'callee' | 'caller';
  readonly publishTo: ExchangeName;
  declare(profile: QueueProfile): QueueDeclaration;
}

/** Throws `TypeError` for an id that is none. */
export function calleeRole(calleeId: string): Role {
  const id = parseHarnessId(calleeId, '--callee-id');
  return { name: 'callee', publishTo: 'hcp.events', declare: (profile) => commandQueue(id, { profile }) };
}

/** Throws `TypeError` for an id that is none. */
export function callerRole(callerId: string): Role {
  const id = parseHarnessId(callerId, '--caller-id');
  return { name: 'caller', publishTo: 'hcp.commands', declare: (profile) => eventQueue(id, { profile }) };
}

export interface RoleFindings {
  readonly findings: readonly Finding[];
  /** Whether its login may make queues, so presumably exchanges too. */
  readonly mayDeclare: boolean;
}

/** Its queue, its dead letters, and what its login may do. */
export async function roleFindings(probe: BrokerProbe, role: Role): Promise<RoleFindings> {
  const queue = role.declare('safe');
  const state = await probe.queue(role.declare);
  const dead = deadLetterQueue(queue).name;
  const letters = (await probe.counts(dead))?.waiting ?? 0;
  const deeds = await probe.rights(queue, role.publishTo);
  const waiting = warning(`Queue ${dead}`, `${letters} waiting`, 'Find out what they are, and who sent them');
  return {
    findings: [
      queueFinding(queue, state),
      ...(letters > 0 ? [waiting] : []),
      rightsFinding(role, probe.facts, deeds, state.state !== 'absent'),
    ],
    mayDeclare: deeds.some(({ deed, outcome }) => deed === 'declare' && outcome === 'done'),
  };
}

function queueFinding({ name, deliveryLimit }: QueueDeclaration, found: QueueState): Finding {
  const subject = `Queue ${name}`;
  const again = 'Delete it once it is empty: the next start makes it anew';
  if (found.state === 'absent') return ok(subject, 'Does not exist yet; the first start makes it');
  const counts = `${found.waiting} waiting, ${found.consumers} consumers`;
  if (found.state === 'differs') return problem(subject, found.difference, again);
  if (found.state === 'trusted') {
    return ok(subject, `Exists; its settings are taken on trust, as it is not ours to declare; ${counts}`);
  }
  const { profile, type } = found;
  if (profile === 'spec') {
    return warning(
      subject,
      `${type}, profile spec: no delivery limit, a full queue drops its oldest, events expire after 24 h; ${counts}`,
      `Where that is not meant: ${again.toLowerCase()}`,
    );
  }
  if (type === 'classic') {
    return warning(subject, `classic: one broker node has it, deliveries are not counted; ${counts}`, again);
  }
  return ok(subject, `quorum, delivery limit ${deliveryLimit}, refuses when full, nothing expires; ${counts}`);
}

const DEEDS: Readonly<Record<DeedOutcome['deed'], string>> = {
  declare: 'make the queue',
  bind: 'bind to',
  consume: 'consume from',
  publish: 'publish to',
};

/** One who may not make queues works with those that an operator made, and has to have one. */
function rightsFinding(role: Role, facts: BrokerFacts, deeds: readonly DeedOutcome[], hasQueue: boolean): Finding {
  const subject = `Rights as ${role.name}`;
  const isProvisioned = (deed: DeedOutcome) =>
    deed.deed === 'declare' && hasQueue && /access to/.test(deed.refusal ?? '');
  const refused = deeds.filter((deed) => deed.outcome === 'refused' && !isProvisioned(deed));
  if (refused.length > 0) {
    const what = refused.map(({ deed, subject, refusal }) => `May not ${DEEDS[deed]} ${subject} (${refusal})`);
    return problem(subject, what.join('; '), fixFor(role, facts));
  }
  const done = deeds.filter(({ outcome }) => outcome === 'done').map(({ deed }) => deed);
  const untried = deeds.filter(({ outcome }) => outcome === 'untried').map(({ deed }) => deed);
  if (deeds.some(isProvisioned)) {
    const tried = done.length > 0 ? `; tried: ${done.join(', ')}` : '';
    return ok(subject, `May not make queues, and has one that an operator made${tried}`);
  }
  const rest = untried.length > 0 ? `; not tried, for want of an exchange: ${untried.join(', ')}` : '';
  return ok(subject, `Tried: ${done.join(', ')}${rest}`);
}

/** The rights of a harness that makes its queues itself, and nothing beyond them. */
function fixFor({ name, declare }: Role, { vhost, login = 'LOGIN' }: BrokerFacts): string {
  const queue = declare('safe').name.slice('hcp.'.length).replaceAll('.', '\\.');
  const own = `(dead\\.)?${queue}(\\..*)?`;
  // A callee passes commands on among its own instances.
  const [source, target] = name === 'callee' ? ['commands', 'commands|events'] : ['events', 'commands'];
  const rights = [`${own}|commands|events|dead`, `${own}|${target}|dead`, `${own}|${source}|dead`];
  const patterns = rights.map((names) => `'^hcp\\.(${names})$'`);
  return `rabbitmqctl set_permissions --vhost ${vhost} ${login} ${patterns.join(' ')}`;
}
