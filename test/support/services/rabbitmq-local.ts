import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { aptInstall } from './apt.ts';
import type { RabbitmqSettings, Started } from './description.ts';
import { findProgram, freePorts, isListening, launch, poll, type ServerProcess, untilReady } from './processes.ts';
import { plugins, tlsFiles, tlsListener } from './rabbitmq-config.ts';
import { probeRabbitmq } from './readiness.ts';
import { createWorkspace } from './workspace.ts';

// Debian's /usr/sbin/rabbitmq-server is a wrapper that changes to another user; the scripts it calls run as anybody.
const SCRIPTS = '/usr/lib/rabbitmq/bin';

/** Starts this machine's own RabbitMQ as a private node; as root on Debian installs it first when it is missing. */
export async function startLocalRabbitmq(settings: RabbitmqSettings): Promise<Started> {
  const program = await findRabbitmq();
  const epmdProgram = findProgram('epmd');
  if (epmdProgram === undefined) throw new Error('epmd (Erlang) is not on the PATH');
  const [port, distPort, epmdPort, tlsPort] = await freePorts(4);
  if (port === undefined || distPort === undefined || epmdPort === undefined) throw new Error('No free ports');
  const workspace = createWorkspace('rabbitmq');
  const { folder } = workspace;
  try {
    // Left to itself, Erlang starts an epmd that stays for ever: a child of ours has a pid.
    const epmd: ServerProcess = {
      name: 'epmd',
      command: epmdProgram,
      args: ['-port', String(epmdPort), '-address', '127.0.0.1'],
      env: {},
      cwd: folder,
      folder,
      port: epmdPort,
    };
    launch(epmd);
    await poll(() => isListening(epmdPort), { timeoutMs: 10_000, what: 'epmd to listen' });

    writeFileSync(join(folder, 'enabled_plugins'), plugins(settings));
    for (const [name, pem] of tlsFiles(settings)) writeFileSync(join(folder, name), pem, { mode: 0o600 });
    const listener = tlsListener(settings, `127.0.0.1:${tlsPort}`, folder);
    writeFileSync(join(folder, 'rabbitmq.conf'), `disk_free_limit.absolute = 50MB\n${listener}`);
    const server: ServerProcess = {
      name: 'rabbitmq',
      command: program,
      args: [],
      env: {
        HOME: folder, // for the Erlang cookie, which rabbitmqctl must share
        ERL_EPMD_PORT: String(epmdPort),
        ERL_EPMD_ADDRESS: '127.0.0.1',
        RABBITMQ_NODENAME: `hcp-${randomBytes(4).toString('hex')}@localhost`,
        RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
        RABBITMQ_NODE_PORT: String(port),
        RABBITMQ_DIST_PORT: String(distPort),
        RABBITMQ_MNESIA_BASE: workspace.subfolder('data'),
        RABBITMQ_LOG_BASE: workspace.subfolder('log'),
        RABBITMQ_LOGS: '-',
        RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
        RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
        // These two do not exist: naming them keeps the machine's own settings out.
        RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'advanced.config'),
        RABBITMQ_CONF_ENV_FILE: join(folder, 'rabbitmq-env.conf'),
        // Makes the script become the Erlang machine instead of waiting for it, so that our pid is the broker's.
        RABBITMQ_ALLOW_INPUT: '1',
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-noinput +sbwt none -kernel inet_dist_use_interface {127,0,0,1}',
      },
      cwd: folder,
      folder,
      port,
    };
    launch(server);
    const url = `amqp://guest:guest@127.0.0.1:${port}`;
    const version = await untilReady(server, 90_000, () => probeRabbitmq(url));
    const ctl = join(dirname(program), 'rabbitmqctl');
    return {
      url,
      ...(settings.tls && { tlsUrl: `amqps://guest:guest@127.0.0.1:${tlsPort}` }),
      version,
      handle: { kind: 'process', server, ctl },
      stop: async () => workspace.close(),
    };
  } catch (error) {
    workspace.close();
    throw error;
  }
}

async function findRabbitmq(): Promise<string> {
  const found = findProgram('rabbitmq-server', [SCRIPTS]);
  if (found !== undefined) return found;
  await aptInstall(['rabbitmq-server']);
  const installed = findProgram('rabbitmq-server', [SCRIPTS]);
  if (installed === undefined) throw new Error('rabbitmq-server could not be installed');
  return installed;
}
