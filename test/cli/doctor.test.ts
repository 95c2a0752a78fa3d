import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSilence } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MongoClient } from 'mongodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { brokerFindings } from '../../cli/doctor/broker.ts';
import type { Finding } from '../../cli/doctor/finding.ts';
import { nodeFinding } from '../../cli/doctor/machine.ts';
import { managementAccess, managementFindings } from '../../cli/doctor/management.ts';
import { mongoDbFindings } from '../../cli/doctor/mongodb.ts';
import { calleeRole, callerRole } from '../../cli/doctor/role.ts';
import { HcpError } from '../../shared/errors.ts';
import { type MongoDbFacts, probeClient } from '../../shared/store/mongodb/probe.ts';
import { openStore } from '../../shared/store/open-store.ts';
import type { BrokerFacts, BrokerProbe } from '../../shared/transport/amqp/probe.ts';
import { commandQueue, deadLetterQueue, eventQueue } from '../../shared/transport/topology.ts';
import { describeAmqp } from '../support/amqp-room.ts';
import { runHcp, startHcp } from '../support/cli.ts';
import { describeWith, freshDatabase, mongodb } from '../support/services/index.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hcp-doctor-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What the doctor says, as JSON. */
async function examine(...argv: string[]): Promise<{ code: number; findings: Finding[] }> {
  const { code, out, err } = await runHcp(['doctor', ...argv, '--json']);
  expect(err).toEqual([]);
  expect(out).toHaveLength(1);
  const { findings, problems, warnings } = JSON.parse(out[0] ?? '');
  expect([problems, warnings]).toEqual([bad(findings, 'problem').length, bad(findings, 'warning').length]);
  return { code, findings };
}

function bad(findings: readonly Finding[], status: Finding['status'] = 'problem'): Finding[] {
  return findings.filter((finding) => finding.status === status);
}

function about(findings: readonly Finding[], subject: string): Finding | undefined {
  return findings.find((finding) => finding.subject === subject);
}

describe('hcp doctor on a machine', () => {
  it('finds nothing wrong where nothing is yet, and makes nothing', async () => {
    const { code, out } = await runHcp(['doctor', '--db', join(folder, 'hcp.db')]);
    expect(code).toBe(0);
    expect(out[0]).toMatch(/^ok {7}Node: Version \d+/);
    expect(out[1]).toMatch(/^ok {7}File .*hcp\.db: Does not exist yet/);
    expect(out.at(-1)).toBe('0 problems, 0 warnings');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('tells a file that is sound, and leaves it as it is', async () => {
    const file = join(folder, 'hcp.db');
    await (await openStore(`sqlite:${file}`)).close();
    const { code, findings } = await examine('--db', file);
    expect(code).toBe(0);
    expect(about(findings, `File ${file}`)?.message).toMatch(/sound; \d+ bytes, WAL$/);
    expect(readdirSync(folder)).toEqual(['hcp.db']);
  });

  it('tells a file that is no database, and one that is damaged', async () => {
    const file = join(folder, 'hcp.db');
    writeFileSync(file, 'This is no database, whatever its name says.'.repeat(100));
    const nonsense = await examine('--db', file);
    expect([nonsense.code, bad(nonsense.findings)[0]?.message]).toEqual([
      1,
      expect.stringContaining('damaged or is not an SQLite database'),
    ]);

    rmSync(file);
    await (await openStore(`sqlite:${file}`)).close();
    const bytes = readFileSync(file);
    bytes.fill(0xff, 8192, 16_384);
    writeFileSync(file, bytes);
    const damaged = await examine('--db', file);
    expect([damaged.code, bad(damaged.findings).length]).toEqual([1, 1]);
    expect(bad(damaged.findings)[0]?.fix).toMatch(/backup/);
  });

  it('tells a place where there can be no file, with its own exit code', async () => {
    const missing = await examine('--db', join(folder, 'nowhere', 'hcp.db'));
    expect([missing.code, bad(missing.findings)[0]?.unreachable]).toEqual([3, true]);
    const isFolder = await examine('--db', folder);
    expect(isFolder.code).toBe(3);
  });

  it('tells a file that another process keeps to itself', async () => {
    const file = join(folder, 'hcp.db');
    await (await openStore(`sqlite:${file}`)).close();
    const rival = new DatabaseSync(file);
    rival.exec('BEGIN IMMEDIATE');
    const { code, findings } = await examine('--db', file);
    rival.close();
    expect([code, bad(findings, 'warning')[0]?.message]).toEqual([0, expect.stringContaining('keeps it locked')]);
  });

  it('tells a Node that is too old', () => {
    expect(nodeFinding('22.12.0')).toMatchObject({ status: 'problem', fix: 'Install Node >=22.13' });
    expect(nodeFinding('22.13.0').status).toBe('ok');
  });

  it('tells URLs of nothing we know', async () => {
    const { code, findings } = await examine('--amqp', 'http://localhost', '--store', 'postgres://localhost/hcp');
    expect([code, bad(findings).map(({ subject }) => subject)]).toEqual([1, ['Broker', 'MongoDB']]);
  });

  it('stops waiting when it is told to', async () => {
    const silent = createSilence();
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    // A server that listens on a port has such an address.
    const { port } = silent.address() as AddressInfo;
    const doctor = startHcp(['doctor', '--amqp', `amqp://127.0.0.1:${port}`]);
    const [socket] = await once(silent, 'connection');
    expect((await doctor.stop()).code).toBe(130);
    socket.destroy();
    silent.close();
  });

  it('takes no role but callee and caller, and no id that is none', async () => {
    expect((await runHcp(['doctor', '--management', 'http://localhost:15672'])).code).toBe(2);
    expect((await runHcp(['doctor', 'operator'])).code).toBe(2);
    const { code, err } = await runHcp(['doctor', '--callee-id', 'a.b']);
    expect([code, err[0]]).toEqual([2, expect.stringContaining('--callee-id must be')]);
  });
});

describeAmqp('hcp doctor on RabbitMQ', (room) => {
  const file = () => join(folder, 'store.db');
  const look = (url: string, ...argv: string[]) =>
    examine('--amqp', url, '--store', `sqlite:${file()}`, '--callee-id', 'lab', '--caller-id', 'alpha', ...argv);
  const names = async () =>
    (await Promise.all(['queues', 'exchanges'].map((what) => room.list<{ name: string }>(what, 'name'))))
      .flat()
      .map(({ name }) => name)
      .filter((name) => name.includes('hcp'))
      .sort();

  it('finds an empty broker fit, then one in use, and leaves both as they were', async () => {
    const empty = await look(room.url);
    expect([empty.code, bad(empty.findings), bad(empty.findings, 'warning')]).toEqual([0, [], []]);
    expect(about(empty.findings, 'Broker')?.message).toMatch(/^RabbitMQ \d+\.\d+\.\d+ at amqp:\/\//);
    expect(about(empty.findings, 'Heartbeat')?.message).toBe('10 s');
    expect(await names()).toEqual([]);

    const transport = await room.connect();
    await transport.declare(commandQueue('lab'));
    await transport.declare(eventQueue('alpha'));
    const before = await names();
    const used = await look(room.url);
    expect([used.code, bad(used.findings), bad(used.findings, 'warning')]).toEqual([0, [], []]);
    expect(about(used.findings, 'Queue hcp.cmd.lab')?.message).toMatch(/^quorum, delivery limit 20, .* 0 waiting/);
    for (const role of ['callee', 'caller']) {
      expect(about(used.findings, `Rights as ${role}`)?.message).toBe('Tried: declare, bind, consume, publish');
    }
    expect(about(used.findings, 'Consistent hash')?.status).toBe('ok');
    expect(await names()).toEqual(before);
    const letters = await (await room.raw()).checkQueue(deadLetterQueue(commandQueue('lab')).name);
    expect(letters.messageCount).toBe(0);
  });

  it('names the argument in which a queue differs, and knows the other profile', async () => {
    const raw = await room.raw();
    await raw.assertQueue('hcp.cmd.odd', { durable: true, arguments: { 'x-queue-type': 'quorum', 'x-max-length': 5 } });
    const odd = await look(room.url, 'callee', '--callee-id', 'odd');
    expect(odd.code).toBe(1);
    expect(about(odd.findings, 'Queue hcp.cmd.odd')).toMatchObject({
      status: 'problem',
      message: expect.stringMatching(/exists with another \w+ \(x-/),
    });

    const transport = await room.connect();
    await transport.declare(eventQueue('literal', { profile: 'spec' }));
    const literal = await look(room.url, 'caller', '--caller-id', 'literal');
    expect([literal.code, about(literal.findings, 'Queue hcp.evt.literal')?.status]).toEqual([0, 'warning']);
  });

  it('tells of an exchange of another type', async () => {
    const raw = await room.raw();
    await raw.deleteExchange('hcp.dead');
    await raw.assertExchange('hcp.dead', 'fanout');
    const { code, findings } = await look(room.url);
    await raw.deleteExchange('hcp.dead');
    expect([code, bad(findings).map(({ subject }) => subject)]).toEqual([1, ['Exchange hcp.dead']]);
  });

  it('tells of dead letters', async () => {
    const transport = await room.connect();
    await transport.declare(commandQueue('lab'));
    const raw = await room.raw();
    raw.publish('hcp.dead', 'hcp.cmd.lab', Buffer.from('?'));
    await raw.waitForConfirms();
    const { findings } = await look(room.url, 'callee');
    expect(about(findings, 'Queue hcp.dead.cmd.lab')?.message).toBe('1 waiting');
  });

  it('tells a login without rights how to get them, and with those all is well', async () => {
    const transport = await room.connect();
    await transport.declare(commandQueue('other'));
    const url = await room.login({ configure: '^$', write: '^$', read: '^$' });
    const login = new URL(url).username;
    const before = await look(url, 'callee', '--callee-id', 'fresh');
    expect(before.code).toBe(1);
    const finding = about(before.findings, 'Rights as callee');
    expect(finding?.status).toBe('problem');
    expect(finding?.message).toContain('May not publish to hcp.events');

    const [, , ...argv] = (finding?.fix ?? '').split(' ');
    expect(argv.slice(0, 3)).toEqual(['--vhost', room.vhost, login]);
    await room.control.ctl('set_permissions', ...argv.map((word) => word.replaceAll("'", '')));
    const after = await look(url, 'callee', '--callee-id', 'fresh');
    expect([after.code, bad(after.findings)]).toEqual([0, []]);
    const started = await room.connect({ url });
    await started.declare(commandQueue('fresh'));
  });

  it('accepts a login that may make nothing where an operator has made it all', async () => {
    const transport = await room.connect();
    await transport.declare(eventQueue('made'));
    const url = await room.login({ configure: '^$', write: '^hcp\\.commands$', read: '^hcp\\.evt\\.made$' });
    const { code, findings } = await look(url, 'caller', '--caller-id', 'made');
    expect([code, bad(findings)]).toEqual([0, []]);
    expect(about(findings, 'Rights as caller')?.message).toMatch(/^May not make queues/);
    expect(about(findings, 'Queue hcp.evt.made')?.message).toMatch(/taken on trust/);
  });

  it('tells wrong passwords, absent brokers and URLs that cannot work, and never a password', async () => {
    const secret = 'canary-7f3a';
    const wrong = new URL(room.url);
    wrong.password = secret;
    const refused = await look(wrong.href);
    expect([refused.code, bad(refused.findings)[0]?.message]).toEqual([
      3,
      expect.stringContaining('refused the login'),
    ]);

    const absent = await look(`amqp://guest:${secret}@127.0.0.1:1`);
    expect([absent.code, bad(absent.findings)[0]?.message]).toEqual([3, expect.stringContaining('Nothing listens')]);

    const plain = await look(`amqp://guest:${secret}@broker.example`);
    expect([plain.code, bad(plain.findings)[0]?.message]).toEqual([1, expect.stringContaining('amqps:')]);
    expect(JSON.stringify([refused, absent, plain])).not.toContain(secret);
  });
});

describe('what hcp doctor makes of a broker', () => {
  const FACTS: BrokerFacts = {
    where: 'amqps://broker.example:5671/',
    product: 'RabbitMQ',
    version: '4.1.0',
    link: 'tls',
    login: 'lab',
    vhost: 'hcp',
    heartbeatSeconds: 10,
  };
  const judge = async (probe: Partial<BrokerProbe>) => {
    const fit = { facts: FACTS, exchange: async () => 'fits', hashExchange: async () => 'there' };
    const whole = { ...fit, ...probe, async [Symbol.asyncDispose]() {} };
    // All that is asked of a probe when nobody's queues are to be looked at.
    const findings = await brokerFindings(async () => whole as unknown as BrokerProbe, [], 'alpha');
    return findings.filter(({ status }) => status !== 'ok');
  };

  it('warns of another product, the login of everybody and a slow heartbeat', async () => {
    expect(await judge({})).toEqual([]);
    expect(await judge({ facts: { ...FACTS, product: 'Qpid' } })).toMatchObject([{ subject: 'Broker' }]);
    expect(await judge({ facts: { ...FACTS, login: 'guest' } })).toMatchObject([{ subject: 'Login' }]);
    expect(await judge({ facts: { ...FACTS, heartbeatSeconds: 60 } })).toMatchObject([{ subject: 'Heartbeat' }]);
  });

  it('tells that an exchange is missing where nobody may make it', async () => {
    const found = await judge({ exchange: async (name) => (name === 'hcp.events' ? 'absent' : 'trusted') });
    expect(found).toMatchObject([{ status: 'problem', subject: 'Exchange hcp.events' }]);
  });

  it('tells that the broker is out of resources, and that it hung up', async () => {
    const lost = (why: string) => judge({ exchange: () => Promise.reject(new HcpError('transport_lost', why)) });
    const [full] = await lost('The broker is out of resources and accepts nothing: low on disk');
    expect([full?.fix, full?.unreachable]).toEqual([expect.stringContaining('alarms'), undefined]);
    expect(await lost('The broker closed the connection')).toMatchObject([{ unreachable: true }]);
  });

  it('warns a caller of a missing plugin', async () => {
    const missing = new HcpError('topology_unsupported', 'No such type');
    const probe = {
      facts: FACTS,
      exchange: async () => 'fits',
      queue: async () => ({ state: 'absent' }),
      counts: async () => undefined,
      rights: async () => [],
      hashExchange: async () => missing,
      async [Symbol.asyncDispose]() {},
    };
    // All that is asked of a probe.
    const connect = async () => probe as unknown as BrokerProbe;
    const findings = await brokerFindings(connect, [callerRole('alpha')], 'alpha');
    expect(about(findings, 'Consistent hash')).toMatchObject({
      status: 'warning',
      fix: 'rabbitmq-plugins enable rabbitmq_consistent_hash_exchange',
    });
  });
});

describe('hcp doctor on the management plugin', () => {
  const NODE = { name: 'rabbit@a', running: true, mem_alarm: false, disk_free_alarm: false, partitions: [] };

  /** The plugin as far as it is asked; answers by path. */
  async function managed(answers: Readonly<Record<string, unknown>>): Promise<Finding[]> {
    const server = createServer(({ url = '', headers }, response) => {
      const isKnown = headers.authorization === `Basic ${Buffer.from('lab:s3 cret').toString('base64')}`;
      const answer = answers[url];
      response.statusCode = !isKnown ? 401 : answer === undefined ? 404 : 200;
      response.end(JSON.stringify(answer ?? {}));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // A server that listens on a port has such an address.
    const { port } = server.address() as AddressInfo;
    try {
      const access = managementAccess(`http://127.0.0.1:${port}`, 'amqp://lab:s3%20cret@127.0.0.1/hcp');
      return await managementFindings(access, [calleeRole('lab')]);
    } finally {
      server.close();
    }
  }

  it('finds a broker without alarms and policies well', async () => {
    const findings = await managed({ '/api/nodes': [NODE], '/api/queues/hcp/hcp.cmd.lab': { policy: '' } });
    expect(findings.map(({ status }) => status)).toEqual(['ok', 'ok']);
  });

  it('tells alarms, and policies that make queues forget', async () => {
    const findings = await managed({
      '/api/nodes': [
        { ...NODE, mem_alarm: true },
        { name: 'rabbit@b', running: false },
      ],
      '/api/queues/hcp/hcp.cmd.lab': {
        policy: 'short',
        effective_policy_definition: { 'message-ttl': 60_000, 'delivery-limit': 3 },
      },
    });
    expect(findings.map(({ status }) => status)).toEqual(['problem', 'problem', 'warning']);
    expect(findings.at(-1)?.message).toBe('By short: messages expire after 60000 ms, delivery limit 3');
  });

  it('tells that it cannot be asked, and refuses to show a password', async () => {
    const access = managementAccess('http://127.0.0.1:1', 'amqp://127.0.0.1');
    expect(await managementFindings(access, [])).toMatchObject([{ status: 'problem', unreachable: true }]);
    expect(() => managementAccess('http://broker.example', 'amqp://127.0.0.1')).toThrow(/use https:/);
    expect(() => managementAccess('ftp://127.0.0.1', 'amqp://127.0.0.1')).toThrow(TypeError);
  });
});

describeWith('hcp doctor on MongoDB', mongodb(), (server) => {
  const look = (url: string) => examine('--db', join(folder, 'hcp.db'), '--store', url);

  it('finds a replica set fit, before and after its first use, and leaves nothing there', async () => {
    await using database = freshDatabase(server);
    const before = await look(database.url);
    expect([before.code, bad(before.findings), bad(before.findings, 'warning')]).toEqual([0, [], []]);
    expect(about(before.findings, 'MongoDB')?.message).toMatch(/^Version \d+\.\d+\.\d+, replica set /);
    await using client = new MongoClient(database.url);
    expect(await client.db().listCollections().toArray()).toEqual([]);

    await (await openStore(database.url)).close();
    const after = await look(database.url);
    expect([after.code, about(after.findings, 'Indexes')?.message]).toEqual([0, 'All there']);

    await client.db().collection('hcp_submissions').dropIndex('by_status');
    const missing = await look(database.url);
    expect([missing.code, bad(missing.findings, 'warning')[0]?.message]).toEqual([
      0,
      'Missing: hcp_submissions.by_status',
    ]);

    await client.db().collection('hcp_submissions').createIndex({ request: 1 }, { name: 'by_status' });
    const different = await look(database.url);
    expect([different.code, bad(different.findings)[0]?.message]).toEqual([
      1,
      'Not as declared: hcp_submissions.by_status',
    ]);
  });

  it('tells a URL that weakens what is promised', async () => {
    await using database = freshDatabase(server);
    const { code, findings } = await look(`${database.url}&w=1`);
    expect([code, bad(findings)[0]?.message]).toEqual([1, expect.stringContaining('w=1 is weaker')]);
  });

  it('tells a server that is not there', async () => {
    const { code, findings } = await look('mongodb://user:canary-7f3a@127.0.0.1:1/hcp?serverSelectionTimeoutMS=200');
    expect([code, bad(findings).map(({ subject }) => subject)]).toEqual([3, ['MongoDB']]);
    expect(JSON.stringify(findings)).not.toContain('canary-7f3a');
  });
});

describe('what hcp doctor makes of a MongoDB server', () => {
  const FACTS: MongoDbFacts = {
    version: '7.0.15',
    setName: 'hcp',
    database: 'hcp',
    clockAheadMs: 0,
    majorityFault: undefined,
    transactionFault: undefined,
    indexes: { missing: [], different: [] },
  };
  const judge = async (facts: Partial<MongoDbFacts>) =>
    (await mongoDbFindings(async () => ({ ...FACTS, ...facts }))).filter(({ status }) => status !== 'ok');

  it('warns of clocks more than a second apart, either way', async () => {
    expect(await judge({ clockAheadMs: -1000 })).toEqual([]);
    expect(await judge({ clockAheadMs: -1001 })).toMatchObject([{ status: 'warning', subject: 'Clock' }]);
    expect(await judge({ clockAheadMs: 5000 })).toMatchObject([{ message: expect.stringContaining('ahead') }]);
  });

  it('tells what did not work when it was tried', async () => {
    expect(await judge({ majorityFault: 'waiting for replication timed out' })).toMatchObject([{ status: 'problem' }]);
    expect(await judge({ transactionFault: 'not supported' })).toMatchObject([{ subject: 'Transactions' }]);
    expect(await judge({ database: 'test' })).toMatchObject([{ status: 'warning', subject: 'Database' }]);
  });

  it('tells a single server how to become a replica set', async () => {
    // The hello of a server that was started without --replSet.
    const single = {
      connect: async () => {},
      db: () => ({ command: async () => ({ isWritablePrimary: true, maxWireVersion: 21 }) }),
      close: async () => {},
    };
    // Nothing else of a client is used on the way to that answer.
    const findings = await mongoDbFindings(() => probeClient(single as unknown as MongoClient));
    expect(findings).toMatchObject([
      {
        status: 'problem',
        message: expect.stringContaining('replica set'),
        fix: expect.stringContaining('rs.initiate()'),
      },
    ]);
    expect(findings[0]?.unreachable).toBeUndefined();
  });
});
