import { isHcpError } from '../../shared/errors.ts';
import { scrubUrls } from '../../shared/logger.ts';
import type { BrokerFacts, BrokerProbe, ExchangeState } from '../../shared/transport/amqp/probe.ts';
import { EXCHANGES, type ExchangeName } from '../../shared/transport/topology.ts';
import { type Finding, ok, problem, unreachable, warning } from './finding.ts';
import { type Role, type RoleFindings, roleFindings } from './role.ts';

const SUBJECT = 'Broker';
/** Later a half-open link is noticed too late to matter. */
const LONGEST_HEARTBEAT_S = 30;

/** What there is to say about a RabbitMQ server, for whoever is in these roles; `connect` is how it is looked at. */
export async function brokerFindings(
  connect: () => Promise<BrokerProbe>,
  roles: readonly Role[],
  callerId: string,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    await using probe = await connect();
    findings.push(...factFindings(probe.facts));
    const looks: RoleFindings[] = [];
    for (const role of roles) looks.push(await roleFindings(probe, role));
    const mayDeclare = looks.some((look) => look.mayDeclare);
    // The names are those of the table.
    for (const name of Object.keys(EXCHANGES) as ExchangeName[]) {
      findings.push(exchangeFinding(name, await probe.exchange(name), mayDeclare));
    }
    findings.push(...looks.flatMap((look) => look.findings));
    findings.push(ACK_TIMEOUT);
    if (roles.some(({ name }) => name === 'caller')) findings.push(await hashFinding(probe, callerId));
  } catch (error) {
    findings.push(whyNot(error));
  }
  return findings;
}

const ACK_TIMEOUT = ok(
  'Acknowledgement time-out',
  'AMQP does not tell it. The default of 30 minutes is ample (no delivery is held while a task runs); consumer_timeout must not be below one minute',
);

function whyNot(error: unknown): Finding {
  const message = scrubUrls(error instanceof Error ? error.message : String(error));
  if (error instanceof TypeError) return problem(SUBJECT, message, 'Correct the URL of --amqp (or HCP_AMQP_URL)');
  if (isHcpError(error, 'transport_unreachable')) {
    const fix =
      error.reason === 'refused'
        ? 'Correct user, password and vhost in the URL, or make them: rabbitmqctl add_user, add_vhost, set_permissions'
        : 'Start the broker, or correct host and port in the URL of --amqp';
    return unreachable(SUBJECT, message, fix);
  }
  if (message.includes('out of resources')) {
    return problem(SUBJECT, message, 'Free memory or disk on the broker: rabbitmq-diagnostics alarms');
  }
  return unreachable(SUBJECT, message, 'Look into the log of the broker, and try again');
}

function factFindings({ where, product, version, link, login, vhost, heartbeatSeconds }: BrokerFacts): Finding[] {
  return [
    product === 'RabbitMQ'
      ? ok(SUBJECT, `${product} ${version} at ${where}`)
      : warning(SUBJECT, `${product} ${version} at ${where}`, 'Use RabbitMQ 3.10 or newer: no other broker is tested'),
    ok('Link', link === 'local' ? 'Stays on this machine' : 'TLS, certificate verified'),
    login === 'guest' && link !== 'local'
      ? warning('Login', 'guest, which everybody knows', 'Give each harness a login of its own: rabbitmqctl add_user')
      : ok('Login', `${login} in vhost ${vhost}`),
    heartbeatSeconds > 0 && heartbeatSeconds <= LONGEST_HEARTBEAT_S
      ? ok('Heartbeat', `${heartbeatSeconds} s`)
      : warning('Heartbeat', `${heartbeatSeconds} s`, 'Set heartbeat = 10 in rabbitmq.conf'),
  ];
}

function exchangeFinding(name: ExchangeName, state: ExchangeState, mayDeclare: boolean): Finding {
  const subject = `Exchange ${name}`;
  const shape = `${EXCHANGES[name]}, durable`;
  if (state === 'fits') return ok(subject, shape);
  if (state === 'trusted') return ok(subject, 'Exists; its type is taken on trust, as it is not ours to declare');
  if (state !== 'absent')
    return problem(subject, state.message, `Delete it while nobody uses it; it is to be ${shape}`);
  if (mayDeclare) return ok(subject, 'Does not exist yet; the first start makes it');
  return problem(
    subject,
    'Does not exist, and is not ours to make',
    `Have the operator of the broker make it: ${shape}`,
  );
}

async function hashFinding(probe: BrokerProbe, callerId: string): Promise<Finding> {
  const subject = 'Consistent hash';
  const state = await probe.hashExchange(callerId);
  if (state === 'there') return ok(subject, 'Exchanges of this type are there, for callers in partitions');
  if (state === 'forbidden') return ok(subject, `Not ours to try: a caller in partitions needs hcp.hash.${callerId}`);
  return warning(
    subject,
    'The broker has no such exchanges; only a caller in partitions needs them',
    'rabbitmq-plugins enable rabbitmq_consistent_hash_exchange',
  );
}
