import { expect, it } from 'vitest';
import { describeWith, mongodb } from '../../../support/services/index.ts';
import { eventRow, insertEvent, insertSession, patchSession } from '../support/scene.ts';
import { namesOf, openWatched } from '../support/watched-mongodb.ts';

const range = (length: number) => Array.from({ length }, (_, i) => i + 1);

describeWith('how many commands the MongoDB store sends', mongodb(), (server) => {
  it('appends any number of rows with one insert and no transaction', async () => {
    await using watched = await openWatched(server);
    const rows = range(500).map((position) => eventRow('s', position));

    const commands = await watched.commandsOf(() => watched.store.append('events', rows));

    expect(namesOf(commands)).toEqual(['insert']);
    expect(commands[0]?.command).toMatchObject({ ordered: true, writeConcern: { w: 'majority', j: true } });
    expect(commands[0]?.command).not.toHaveProperty('startTransaction');
  });

  it('commits a single write with one command and no transaction', async () => {
    await using watched = await openWatched(server);
    const { store } = watched;

    const inserting = await watched.commandsOf(() => store.commit([insertSession('s')]));
    const patching = await watched.commandsOf(() => store.commit([patchSession('s', 2)]));

    expect(namesOf([...inserting, ...patching])).toEqual(['insert', 'update']);
    for (const { command } of [...inserting, ...patching]) {
      expect(command).toMatchObject({ writeConcern: { w: 'majority', j: true } });
      expect(command).not.toHaveProperty('startTransaction');
    }
  });

  it('commits many writes with one command per table and kind of write, and the commit', async () => {
    await using watched = await openWatched(server);
    await watched.store.commit(range(20).map((i) => insertSession(`s${i}`)));
    // As a group committer makes it: each session moves on and gets an event, one after the other.
    const writes = range(20).flatMap((i) => [patchSession(`s${i}`, 2), insertEvent(`s${i}`, 1)]);

    const commands = await watched.commandsOf(() => watched.store.commit(writes));

    expect(namesOf(commands)).toEqual(['update', 'insert', 'commitTransaction']);
    expect(commands.at(-1)?.command).toMatchObject({ writeConcern: { w: 'majority', j: true } });
  });

  it('names a conflict among many writes at the price of a second, careful run', async () => {
    await using watched = await openWatched(server);
    await watched.store.commit([insertSession('s1'), insertSession('s2', { version: 9 })]);
    let answer: unknown;

    const commands = await watched.commandsOf(async () => {
      answer = await watched.store.commit([patchSession('s1', 2), patchSession('s2', 2), insertEvent('s1', 1)]);
    });

    expect(answer).toEqual({ write: 1, reason: 'mismatch' });
    expect(namesOf(commands)).toEqual([
      ...['update', 'abortTransaction'],
      ...['update', 'update', 'find', 'abortTransaction'],
    ]);
  });

  it('sends one command for each read and write of a transaction, and the commit', async () => {
    await using watched = await openWatched(server);
    await watched.store.commit([insertSession('s')]);

    const commands = await watched.commandsOf(() =>
      watched.store.transaction(async (tx) => {
        await tx.get('sessions', ['s']);
        await tx.write([patchSession('s', 2)]);
        await tx.write(range(10).map((position) => insertEvent('s', position)));
      }),
    );

    expect(namesOf(commands)).toEqual(['find', 'update', 'insert', 'commitTransaction']);
  });

  it('reads with one command, and no more of the index than it gives back', async () => {
    await using watched = await openWatched(server);
    const { store } = watched;
    await store.append(
      'events',
      range(300).map((position) => eventRow('s', position)),
    );

    const reading = await watched.commandsOf(() => store.get('events', ['s', 7]));
    const [scan, ...more] = await watched.commandsOf(() =>
      store.scan('events', 'key', { where: ['s'], from: 20, to: 30, limit: 1_000 }),
    );

    expect(namesOf(reading)).toEqual(['find']);
    expect(more).toEqual([]);
    const { find, filter, hint, min, max, sort, limit } = scan?.command ?? {};
    const { executionStats } = await store.client
      .db()
      .command({ explain: { find, filter, hint, min, max, sort, limit }, verbosity: 'executionStats' });
    expect(executionStats).toMatchObject({ nReturned: 11, totalKeysExamined: 11, totalDocsExamined: 11 });
  });
});
