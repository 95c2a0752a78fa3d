import { describe, expect, it } from 'vitest';
import { type Callee, type CalleeOptions, createCallee } from '../../callee/index.ts';
import type { Store } from '../../shared/store/store.ts';
import { hcpTables } from '../../shared/store/tables.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { mistake, untouchable } from '../support/mistakes.ts';
import { verifies } from '../support/verifies.ts';
import { TASK } from '../support/world.ts';

const transport = untouchable<Transport>('transport', ['consume', 'publish', 'declare', 'remove', 'watch', 'close']);
const STORE_METHODS = ['get', 'scan', 'commit', 'append', 'transaction', 'now', 'close'];
const store = untouchable<Store>('store', STORE_METHODS, { tables: hcpTables });
const good: CalleeOptions = { calleeId: 'lab', transport, store };

const done = async () => ({ outputs: {} });

async function rejection(work: Promise<unknown>): Promise<string> {
  const outcome = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  return mistake(() => {
    if (outcome !== undefined) throw outcome;
  });
}

describe('createCallee', () => {
  it('does no I/O with options that are right', async () => {
    const callee = createCallee({ ...good, leaseMs: 100, retention: 'P1D', queue: { profile: 'spec' } });
    callee.capability(TASK, done);
    await callee.close(); // never started: nothing to let go
  });

  const wrong: readonly [options: object | undefined, sentence: string | RegExp][] = [
    [undefined, 'createCallee needs an options object'],
    [{ ...good, leasMs: 100 }, 'Unknown option leasMs; did you mean leaseMs?'],
    [{ ...good, abortTimeoutMs: 100 }, 'Unknown option abortTimeoutMs; did you mean abortTimeout?'],
    [{ ...good, polcy: done }, 'Unknown option polcy; did you mean policy?'],
    [{ transport, store }, /^calleeId must be 1 to 64 letters/],
    [{ ...good, calleeId: 'a.b' }, /^calleeId must be .* but is "a\.b"$/],
    [{ ...good, calleeId: '#' }, /^calleeId must be/],
    [{ ...good, calleeId: '' }, /^calleeId must be/],
    [{ ...good, instanceId: 'one.two' }, /^instanceId must be/],
    [{ calleeId: 'lab', store }, 'transport must be an open transport, as openTransport gives one'],
    [{ ...good, transport: 'amqp://localhost' }, 'transport must be an open transport, as openTransport gives one'],
    [{ ...good, transport: Promise.resolve(transport) }, /^transport must be an open transport/],
    [{ calleeId: 'lab', transport }, 'store must be an open store, as openStore gives one'],
    [{ ...good, store: transport }, 'store must be an open store, as openStore gives one'],
    [{ ...good, store: untouchable('store', STORE_METHODS) }, 'store must be an open store, as openStore gives one'],
    [
      { ...good, store: untouchable('store', STORE_METHODS, { tables: { sessions: hcpTables.sessions } }) },
      /^store lacks the tables .*answers, log, .*: open it with hcpTables among its tables$/,
    ],
    [{ ...good, policy: { accept: true } }, 'policy must name its callers, as acceptKnownCallers([…]) does'],
    [{ ...good, policy: null }, 'policy must name its callers, as acceptKnownCallers([…]) does'],
    [{ ...good, policy: done }, 'policy must name its callers, as acceptKnownCallers([…]) does'],
    [{ ...good, policy: { callers: 'everybody' } }, 'policy must name its callers, as acceptKnownCallers([…]) does'],
    [{ ...good, policy: { callers: {}, cheks: [] } }, 'Unknown option policy.cheks; did you mean policy.checks?'],
    [
      { ...good, policy: { callers: { alpha: { riskLimt: 'R5' } } } },
      'Unknown option policy.callers.riskLimt; did you mean policy.callers.riskLimit?',
    ],
    [{ ...good, policy: { callers: { alpha: true } } }, /^policy\.callers\.alpha must be an object/],
    [{ ...good, policy: { callers: { alpha: { riskLimit: 'R9' } } } }, /^policy\.callers\.riskLimit must be one of R1/],
    [{ ...good, policy: { callers: { alpha: { dataLimit: 2 } } } }, /^policy\.callers\.dataLimit must be one of T1/],
    [
      { ...good, policy: { callers: { alpha: { capabilities: 'all' } } } },
      /^policy\.callers\.capabilities must be a list/,
    ],
    [
      { ...good, policy: { callers: {}, identity: 'trust' } },
      "policy.identity must be 'login' or 'claim', but is \"trust\"",
    ],
    [{ ...good, policy: { callers: {}, logins: { bob: 'a.b' } } }, /^policy\.logins\.bob must be/],
    [
      { ...good, policy: { callers: {}, defaultDataClassification: 'secret' } },
      /^policy\.defaultDataClassification must be/,
    ],
    [
      { ...good, policy: { callers: {}, checks: [{ after: 'lunch', check: done }] } },
      /^policy\.checks\[\]\.after must be/,
    ],
    [
      { ...good, policy: { callers: {}, checks: [{ after: 'risk', check: 'no' }] } },
      'policy.checks[].check must be a function',
    ],
    [{ ...good, policy: { callers: {}, checks: [{ check: done }] } }, /^policy\.checks\[\]\.after must be/],
    [{ ...good, policy: { callers: {}, checks: [null] } }, /^policy\.checks\[\]\.after must be/],
    [{ ...good, policy: { callers: {}, checks: done } }, /^policy\.checks must be a list/],
    [{ ...good, approvalTimeout: '1 day' }, 'approvalTimeout must be an ISO 8601 duration above zero, as P1D'],
    [{ ...good, keys: {} }, 'keys must have the methods sign, verify, publicKeys'],
    [{ ...good, artifacts: { baseUrl: '/artifacts' } }, /^artifacts\.baseUrl must be an /],
    [{ ...good, leaseMs: 10 }, 'leaseMs must be an integer from 100 to 2147483647, but is 10'],
    [{ ...good, leaseMs: '5s' }, /^leaseMs must be an integer .* but is "5s"$/],
    [{ ...good, maxDuration: '4h' }, 'maxDuration must be an ISO 8601 duration above zero, as PT4H'],
    [{ ...good, maxDuration: 14_400_000 }, 'maxDuration must be an ISO 8601 duration above zero, as PT4H'],
    [{ ...good, maxDuration: 'P1Y' }, /^maxDuration must be/],
    [{ ...good, abortTimeout: 'PT0S' }, 'abortTimeout must be an ISO 8601 duration above zero, as PT5M'],
    [{ ...good, tokenLifetime: '' }, 'tokenLifetime must be an ISO 8601 duration above zero, as PT1H'],
    [{ ...good, idleTimeout: 60 }, 'idleTimeout must be an ISO 8601 duration above zero, as PT1H'],
    [{ ...good, idleGrace: '-PT1S' }, 'idleGrace must be an ISO 8601 duration above zero, as PT5M'],
    [{ ...good, onIdle: 'sleep' }, "onIdle must be 'fail' or 'suspend', but is \"sleep\""],
    [{ ...good, retention: 'PT23H' }, 'retention must be at least P1D: a repeated submit must find its answer'],
    [{ ...good, retention: 'forever' }, 'retention must be an ISO 8601 duration above zero, as P7D'],
    [{ ...good, gateTimeoutMs: 0 }, /^gateTimeoutMs must be an integer from 1/],
    [{ ...good, gateTimeoutMs: 2 ** 31 }, /^gateTimeoutMs must be an integer from 1 to 2147483647/],
    [{ ...good, abortToken: true }, "abortToken must be 'optional' or 'required', but is boolean"],
    [{ ...good, maxCheckpointBytes: 15 * 1024 * 1024 }, /^maxCheckpointBytes must be an integer from 1 to 14680064/],
    [{ ...good, keptCheckpoints: 0 }, /^keptCheckpoints must be an integer from 1 to 1000/],
    [{ ...good, maxBacklog: 1.5 }, /^maxBacklog must be an integer/],
    [{ ...good, prefetch: 0 }, /^prefetch must be an integer/],
    [{ ...good, prefetch: 65_536 }, /^prefetch must be an integer/],
    [{ ...good, closeTimeoutMs: Number.NaN }, /^closeTimeoutMs must be an integer/],
    [{ ...good, queue: { maxLength: 0 } }, 'maxLength must be a positive integer'],
    [{ ...good, queue: { profile: 'Safe' } }, "queue.profile must be 'safe' or 'spec', but is \"Safe\""],
    [{ ...good, queue: { maxLenght: 5 } }, 'Unknown option queue.maxLenght; did you mean queue.maxLength?'],
    [{ ...good, limits: { bodyBytes: -1 } }, /bodyBytes must be a positive integer/],
    [{ ...good, clock: Date }, 'clock must have the methods now, setTimeout, clearTimeout'],
    [{ ...good, logger: {} }, 'logger must have the methods debug, info, warn, error'],
  ];
  for (const [options, sentence] of wrong) {
    const spoilt = Object.entries(options ?? { options }).filter(([name, value]) => Reflect.get(good, name) !== value);
    const name = spoilt.map(([option, value]) => `${option} ${typeof value === 'object' ? 'object' : String(value)}`);
    verifies('HCP-013', `refuses ${name.join() || 'a missing option'}: ${sentence}`, () => {
      const message = mistake(() => createCallee(options as CalleeOptions));
      if (typeof sentence === 'string') expect(message).toBe(sentence);
      else expect(message).toMatch(sentence);
    });
  }
});

describe('capability', () => {
  const offer =
    (declaration: unknown, executor: unknown = done, options?: unknown) =>
    () =>
      createCallee(good).capability(declaration as typeof TASK, executor as typeof done, options as never);

  const wrong: readonly [name: string, offer: () => Callee, sentence: string | RegExp][] = [
    ['nothing', offer(undefined), /^The capability declaration is invalid: /],
    ['no name', offer({ ...TASK, name: undefined }), /^The capability declaration is invalid: \/name is missing/],
    ['no schema for inputs', offer({ ...TASK, input_schema: undefined }), /\/input_schema is missing/],
    ['an unknown risk', offer({ ...TASK, safety: { ...TASK.safety, risk_ceiling: 'R9' } }), /\/safety\/risk_ceiling/],
    ['no place at all', offer({ ...TASK, constraints: { concurrent_limit: 0 } }), /\/constraints\/concurrent_limit/],
    ['a bad duration', offer({ ...TASK, constraints: { max_duration: 'P1Y' } }), /\/constraints\/max_duration/],
    ['a version that is none', offer({ ...TASK, version: 'one' }), /version/],
    [
      'a schema that cannot be compiled',
      offer({ ...TASK, input_schema: { type: 'nonsense' } }),
      /^The input_schema of capability test\.task cannot be compiled: /,
    ],
    [
      'a schema that points nowhere',
      offer({ ...TASK, output_schema: { $ref: 'https://example.org/schema.json' } }),
      /^The output_schema of capability test\.task cannot be compiled: /,
    ],
    ['no executor', offer(TASK, 'run.js'), 'Capability test.task has no executor function'],
    ['a cleanup that is none', offer(TASK, done, { cleanup: 1 }), 'The cleanup of capability test.task is no function'],
    [
      'the same twice',
      () => createCallee(good).capability(TASK, done).capability(TASK, done),
      'Capability test.task 1.0.0 is declared twice',
    ],
  ];
  for (const [name, work, sentence] of wrong) {
    verifies('HCP-315', `refuses ${name}`, () => {
      const message = mistake(work);
      if (typeof sentence === 'string') expect(message).toBe(sentence);
      else expect(message).toMatch(sentence);
    });
  }

  verifies('HCP-315', 'takes several versions of one name, and two schemas with one $id', () => {
    const schema = { $id: 'urn:test:same', type: 'object' };
    const callee = createCallee(good);
    for (const version of ['1.0.0', '1.1.0']) callee.capability({ ...TASK, version, input_schema: schema }, done);
  });
});

describe('start', () => {
  /** A store that lets a callee start as far as its first step, and no further. */
  const failing = () => {
    const now = () => Promise.reject(new Error('The store is away'));
    return { ...store, now } as Store;
  };

  it('refuses a callee that can do nothing', async () => {
    expect(await rejection(createCallee(good).start())).toBe('start() needs a capability: call capability() first');
  });

  it('refuses to start twice', async () => {
    const callee = createCallee({ ...good, store: failing() }).capability(TASK, done);
    await expect(callee.start()).rejects.toThrow('The store is away');
    expect(await rejection(callee.start())).toBe('start() must be called once');
  });

  it('refuses another capability after the start', async () => {
    const callee = createCallee({ ...good, store: failing() }).capability(TASK, done);
    await expect(callee.start()).rejects.toThrow('The store is away');
    const late = () => callee.capability({ ...TASK, version: '2.0.0' }, done);
    expect(mistake(late)).toBe('capability() must be called before start()');
  });

  it('refuses to start what is closed', async () => {
    const callee = createCallee(good).capability(TASK, done);
    await callee.close();
    expect(await rejection(callee.start())).toBe('start() comes too late: the callee is closed');
  });
});
