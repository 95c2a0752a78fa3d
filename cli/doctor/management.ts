import { isLoopback } from '../../shared/loopback.ts';
import { parseServerUrl } from '../../shared/transport/amqp/server-url.ts';
import { deadLetterQueue } from '../../shared/transport/topology.ts';
import { type Finding, ok, problem, unreachable, warning } from './finding.ts';
import type { Role } from './role.ts';

const SUBJECT = 'Management';
const PATIENCE_MS = 10_000;
const LEAST_DELIVERIES = 20;
const LEAST_ACK_MS = 60_000;

/** Where the management plugin answers, and as whom to ask. */
export interface ManagementAccess {
  readonly origin: string;
  readonly authorization: string;
  /** Encoded for a path. */
  readonly vhost: string;
}

/** Takes `http://user:password@host:15672` apart; who is not named there is the broker's login. Throws `TypeError`. */
export function managementAccess(url: string, amqpUrl: string): ManagementAccess {
  const broker = parseServerUrl(amqpUrl);
  // Node's own error would repeat the whole URL.
  if (!URL.canParse(url)) throw new TypeError('--management is not a URL');
  const { protocol, hostname, origin, username, password } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new TypeError('--management must be an http:// or https:// URL');
  if (protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))) {
    throw new TypeError('Plain http: to another machine shows the password to anyone on the way: use https:');
  }
  const credentials =
    username === ''
      ? `${broker.username}:${broker.password}`
      : `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    origin,
    authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
    vhost: encodeURIComponent(broker.vhost),
  };
}

/** What AMQP does not tell: alarms, and policies that change what queues do. */
export async function managementFindings(access: ManagementAccess, roles: readonly Role[]): Promise<Finding[]> {
  try {
    const nodes = (await ask(access, 'nodes')) as readonly Node[] | undefined;
    const findings = (nodes ?? []).map(nodeFinding);
    for (const role of roles) {
      const queue = role.declare('safe');
      for (const { name } of [queue, deadLetterQueue(queue)]) {
        const found = (await ask(access, `queues/${access.vhost}/${name}`)) as Queue | undefined;
        if (found !== undefined) findings.push(policyFinding(name, found));
      }
    }
    return findings;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const fix = 'Enable it (rabbitmq-plugins enable rabbitmq_management), and give the user the tag monitoring';
    return [unreachable(SUBJECT, `${access.origin} does not answer: ${message}`, fix)];
  }
}

interface Node {
  readonly name: string;
  readonly running: boolean;
  readonly mem_alarm?: boolean;
  readonly disk_free_alarm?: boolean;
  readonly partitions?: readonly unknown[];
}

interface Queue {
  readonly policy?: string | null;
  readonly operator_policy?: string | null;
  readonly effective_policy_definition?: Readonly<Record<string, unknown>>;
}

/** What the plugin answers; `undefined` when there is no such thing. */
async function ask({ origin, authorization }: ManagementAccess, path: string): Promise<unknown> {
  const response = await fetch(`${origin}/api/${path}`, {
    headers: { authorization },
    signal: AbortSignal.timeout(PATIENCE_MS),
  }).catch((error: Error) => {
    // What fetch says itself is "fetch failed".
    throw error.cause ?? error;
  });
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.json();
}

function nodeFinding(node: Node): Finding {
  const subject = `Node ${node.name}`;
  if (!node.running) return problem(subject, 'Does not run', 'Start it, or take it out of the cluster');
  if (node.mem_alarm)
    return problem(subject, 'Memory alarm: nothing is accepted', 'Free memory, or raise its high watermark');
  if (node.disk_free_alarm) return problem(subject, 'Disk alarm: nothing is accepted', 'Free disk space');
  if (node.partitions?.length)
    return problem(subject, 'Sees a network partition', 'Restart the nodes of the smaller side');
  return ok(subject, 'Runs, no alarms');
}

/** A policy cannot loosen what a queue was declared with, but it can tighten it. */
function policyFinding(name: string, queue: Queue): Finding {
  const subject = `Policy of ${name}`;
  const definition = queue.effective_policy_definition ?? {};
  const policies = [queue.policy, queue.operator_policy].filter(
    (policy) => typeof policy === 'string' && policy !== '',
  );
  if (policies.length === 0) return ok(subject, 'None');
  const below = (key: string, least: number) => {
    const value = definition[key];
    return typeof value === 'number' && value < least;
  };
  const harms = [
    ...('message-ttl' in definition ? [`messages expire after ${definition['message-ttl']} ms`] : []),
    ...('expires' in definition ? [`the queue is deleted after ${definition.expires} ms without a consumer`] : []),
    ...(below('delivery-limit', LEAST_DELIVERIES) ? [`delivery limit ${definition['delivery-limit']}`] : []),
    ...(below('consumer-timeout', LEAST_ACK_MS) ? [`consumer timeout ${definition['consumer-timeout']} ms`] : []),
  ];
  const named = policies.join(' and ');
  if (harms.length === 0) return ok(subject, `${named}, without harm`);
  return warning(
    subject,
    `By ${named}: ${harms.join(', ')}`,
    'Take this queue out of the policy, or the key out of it',
  );
}
