import { expect, it } from 'vitest';
import { isHcpError } from '../../../../shared/errors.ts';
import { describeWith, mongodb } from '../../../support/services/index.ts';
import { primaryOf, proxiedUrl } from '../support/harnesses.ts';
import { startLossyProxy } from '../support/lossy-proxy.ts';
import { eventRow, insertEvent, insertSession, patchSession, sessionRow } from '../support/scene.ts';
import { namesOf, openWatched, type WatchedStore } from '../support/watched-mongodb.ts';

const WRITE_CONFLICT = 112;
const WRITE_CONCERN_FAILED = 64;
const UNSATISFIABLE_WRITE_CONCERN = 100;
const PRIMARY_STEPPED_DOWN = 189;

describeWith('the MongoDB store in trouble', mongodb(), (server) => {
  if (server.control === undefined) {
    it('needs a server it may disturb', ({ skip }) => skip('Test commands may be off on a server that is not ours'));
    return;
  }

  it('runs the work again after transient errors, and its effect happens once', async () => {
    await using watched = await openWatched(server);
    const { store } = watched;
    await store.commit([insertSession('s', { version: 0 })]);
    await watched.failNext(4, ['update'], { errorCode: WRITE_CONFLICT, errorLabels: ['TransientTransactionError'] });
    let runs = 0;

    await store.transaction(async (tx) => {
      runs++;
      const row = await tx.get('sessions', ['s']);
      await tx.write([{ patch: 'sessions', key: ['s'], set: { version: Number(row?.version) + 1 } }]);
    });

    expect(runs).toBe(5);
    expect(await store.get('sessions', ['s'])).toEqual(sessionRow('s', { version: 1 }));
  });

  it('commits again, without running the work again, when the connection breaks on the commit', async () => {
    await using watched = await openWatched(server);
    await watched.failNext(1, ['commitTransaction'], { closeConnection: true });
    let runs = 0;

    const commands = await watched.commandsOf(() =>
      watched.store.transaction(async (tx) => {
        runs++;
        await tx.write([insertSession('s')]);
      }),
    );

    expect(runs).toBe(1);
    expect(namesOf(commands)).toEqual(['insert', 'commitTransaction', 'commitTransaction']);
    expect(await watched.store.get('sessions', ['s'])).toEqual(sessionRow('s'));
  });

  it('commits again, without running the work again, until a majority has it', async () => {
    await using watched = await openWatched(server);
    const writeConcernError = { code: WRITE_CONCERN_FAILED, errmsg: 'waiting for replication timed out' };
    await watched.failNext(2, ['commitTransaction'], { writeConcernError });
    let runs = 0;

    const commands = await watched.commandsOf(() =>
      watched.store.transaction(async (tx) => {
        runs++;
        await tx.write([insertSession('s')]);
      }),
    );

    expect(runs).toBe(1);
    expect(namesOf(commands)).toEqual(['insert', 'commitTransaction', 'commitTransaction', 'commitTransaction']);
  });

  it.each<[string, string, (watched: WatchedStore) => Promise<unknown>]>([
    ['commit', 'commitTransaction', ({ store }) => store.commit([insertSession('s'), insertEvent('s', 1)])],
    ['transaction', 'commitTransaction', ({ store }) => store.transaction((tx) => tx.write([insertEvent('s', 1)]))],
    ['commit of one write', 'insert', ({ store }) => store.commit([insertEvent('s', 1)])],
    ['append', 'insert', ({ store }) => store.append('events', [eventRow('s', 1)])],
  ])('calls the outcome of a %s unknown when no majority confirms it: a look tells', async (_what, command, write) => {
    await using watched = await openWatched(server);
    // The server does the work and says this; the driver does not try again.
    const writeConcernError = { code: UNSATISFIABLE_WRITE_CONCERN, errmsg: 'not enough data-bearing nodes' };
    await watched.failNext(1, [command], { writeConcernError });

    await expect(write(watched)).rejects.toSatisfy((error) => isHcpError(error, 'store_outcome_unknown'));

    expect(await watched.store.get('events', ['s', 1])).toEqual(eventRow('s', 1));
  });

  it('survives one lost answer to a write, and calls the outcome unknown after two', async () => {
    await using proxy = await startLossyProxy(...(await primaryOf(server.url)));
    await using watched = await openWatched(server, {}, (url) => proxiedUrl(url, proxy));
    const { store } = watched;

    proxy.loseAcknowledgements(1);
    expect(await store.append('events', [eventRow('s', 1), eventRow('s', 2)])).toBe('appended');
    expect(proxy.lost).toBe(1);

    proxy.loseAcknowledgements(2);
    const appending = store.append('events', [eventRow('s', 3)]);
    await expect(appending).rejects.toSatisfy((error) => isHcpError(error, 'store_outcome_unknown') && error.retryable);
    expect(proxy.lost).toBe(3);
    expect(await store.get('events', ['s', 3])).toEqual(eventRow('s', 3));
  });

  it('says that the server is unavailable, not that the outcome is unknown, when a write was refused for good', async () => {
    await using watched = await openWatched(server);
    const { store } = watched;
    await store.commit([insertSession('s')]);
    // InterruptedAtShutdown would be repeated; this one the server says before it does anything.
    await watched.failNext(1, ['insert'], { errorCode: 8_000 });

    await expect(store.commit([insertEvent('s', 1)])).rejects.toSatisfy((error) =>
      isHcpError(error, 'store_unavailable'),
    );

    expect(await store.get('events', ['s', 1])).toBeUndefined();
  });

  it('repeats a single write by itself when the primary steps down before it', async () => {
    await using watched = await openWatched(server);
    const { store } = watched;
    await store.commit([insertSession('s')]);
    await watched.failNext(1, ['update'], { errorCode: PRIMARY_STEPPED_DOWN, errorLabels: ['RetryableWriteError'] });

    const commands = await watched.commandsOf(() => store.commit([patchSession('s', 2)]));

    expect(namesOf(commands)).toEqual(['update', 'update']);
    expect(await store.get('sessions', ['s'])).toEqual(sessionRow('s', { version: 2 }));
  });
});
