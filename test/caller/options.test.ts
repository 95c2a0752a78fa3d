import { describe, expect, it } from 'vitest';
import { type CallerOptions, createCaller } from '../../caller/index.ts';
import type { Store } from '../../shared/store/store.ts';
import { hcpTables } from '../../shared/store/tables.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { mistake, untouchable } from '../support/mistakes.ts';
import { verifies } from '../support/verifies.ts';

const transport = untouchable<Transport>('transport', ['consume', 'publish', 'declare', 'remove', 'watch', 'close']);
const STORE_METHODS = ['get', 'scan', 'commit', 'append', 'transaction', 'now', 'close'];
const store = untouchable<Store>('store', STORE_METHODS, { tables: hcpTables });
const good: CallerOptions = { callerId: 'alpha', transport, store };

const TIMES = ['handlerTimeoutMs', 'gapHoldMs', 'replayTimeoutMs', 'submitTimeoutMs', 'graceMs'] as const;
const LISTENERS = 'onEvent onGap onLateEvent onParked onOrphan onUncorrelated onInvalid onTrouble'.split(' ');

describe('createCaller', () => {
  it('does no I/O with options that are right', async () => {
    const caller = createCaller({
      ...good,
      onEvent: () => {},
      submitTries: 1,
      graceMs: 1,
      prefetch: 100,
      queue: { profile: 'spec' },
      partitions: { count: 4, consume: [0, 3] },
    });
    await caller.close(); // never started: nothing to let go
  });

  const wrong: readonly (readonly [options: object | undefined | null, sentence: string | RegExp])[] = [
    [undefined, 'createCaller needs an options object'],
    [null, 'createCaller needs an options object'],
    [{ ...good, submitTimeout: 100 }, 'Unknown option submitTimeout; did you mean submitTimeoutMs?'],
    [{ ...good, onevent: () => {} }, 'Unknown option onevent; did you mean onEvent?'],
    [{ transport, store }, /^callerId must be 1 to 64 letters/],
    [{ ...good, callerId: 'a.b' }, /^callerId must be .* but is "a\.b"$/],
    [{ ...good, callerId: '*' }, /^callerId must be/],
    [{ callerId: 'alpha', store }, 'transport must be an open transport, as openTransport gives one'],
    [{ ...good, transport: 'amqp://localhost' }, 'transport must be an open transport, as openTransport gives one'],
    [{ ...good, transport: Promise.resolve(transport) }, /^transport must be an open transport/],
    [{ callerId: 'alpha', transport }, 'store must be an open store, as openStore gives one'],
    [{ ...good, store: transport }, 'store must be an open store, as openStore gives one'],
    [{ ...good, store: untouchable('store', STORE_METHODS) }, 'store must be an open store, as openStore gives one'],
    [
      { ...good, store: untouchable('store', STORE_METHODS, { tables: { follows: hcpTables.follows } }) },
      /^store lacks the tables .*submissions.*: open it with hcpTables among its tables$/,
    ],
    ...LISTENERS.map((name) => [{ ...good, [name]: 'log' }, `${name} must be a function`] as const),
    ...LISTENERS.map((name) => [{ ...good, [name]: null }, `${name} must be a function`] as const),
    ...TIMES.flatMap((name) =>
      [0, 2 ** 31, 1.5, Number.NaN, '5s', null].map(
        (value) =>
          [{ ...good, [name]: value }, new RegExp(`^${name} must be an integer from 1 to 2147483647, but`)] as const,
      ),
    ),
    [{ ...good, maxAttempts: 0 }, 'maxAttempts must be an integer from 1 to 1000, but is 0'],
    [{ ...good, maxAttempts: 1001 }, 'maxAttempts must be an integer from 1 to 1000, but is 1001'],
    [{ ...good, submitTries: 0 }, 'submitTries must be an integer from 1 to 1000, but is 0'],
    [{ ...good, maxAhead: -1 }, /^maxAhead must be an integer/],
    [{ ...good, retentionMs: '7d' }, /^retentionMs must be an integer .* but is "7d"$/],
    [{ ...good, prefetch: 0 }, 'prefetch must be an integer from 1 to 65535, but is 0'],
    [{ ...good, prefetch: 65_536 }, 'prefetch must be an integer from 1 to 65535, but is 65536'],
    [{ ...good, queue: { maxLength: 0 } }, 'maxLength must be a positive integer'],
    [{ ...good, queue: { profile: 'Safe' } }, "queue.profile must be 'safe' or 'spec', but is \"Safe\""],
    [{ ...good, queue: { maxLenght: 5 } }, 'Unknown option queue.maxLenght; did you mean queue.maxLength?'],
    [{ ...good, partitions: null }, 'partitions must be an object'],
    [{ ...good, partitions: { count: 0 } }, 'partitions.count must be an integer from 1 to 256'],
    [{ ...good, partitions: { count: 1e12 } }, 'partitions.count must be an integer from 1 to 256'],
    [{ ...good, partitions: { count: 2, consume: [2] } }, 'partitions.consume names 2, but there are 0 to 1'],
    [{ ...good, partitions: { count: 2, consume: 1 } }, 'partitions.consume must be an array of numbers'],
    [{ ...good, limits: { bodyBytes: -1 } }, 'limits.bodyBytes must be a positive integer'],
    [{ ...good, limits: { bytes: 1 } }, /^limits\.bytes is unknown; known are bodyBytes, /],
    [{ ...good, clock: Date }, 'clock must have the methods now, setTimeout, clearTimeout'],
    [{ ...good, logger: {} }, 'logger must have the methods debug, info, warn, error'],
  ];
  for (const [options, sentence] of wrong) {
    const spoilt = Object.entries(options ?? { options }).filter(([name, value]) => Reflect.get(good, name) !== value);
    const name = spoilt.map(([option, value]) => `${option} ${typeof value === 'object' ? 'object' : String(value)}`);
    verifies('HCP-013', `refuses ${name.join() || 'a missing option'}: ${sentence}`, () => {
      const message = mistake(() => createCaller(options as CallerOptions));
      if (typeof sentence === 'string') expect(message).toBe(sentence);
      else expect(message).toMatch(sentence);
    });
  }

  for (const calleeId of ['', 'a.b', '#', undefined, 7]) {
    it(`refuses to submit to ${JSON.stringify(calleeId)} before any I/O`, async () => {
      const task = { capability: 'test.task', intent: 'Do it', inputs: {} };
      const outcome = await createCaller(good)
        .submit(task, { calleeId: calleeId as string })
        .catch((error: unknown) => error);
      const message = mistake(() => {
        throw outcome;
      });
      expect(message).toMatch(/^calleeId must be/);
    });
  }
});
