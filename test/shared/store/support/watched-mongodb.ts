import type { CommandStartedEvent, Document, MongoClientOptions } from 'mongodb';
import { connectMongoDb, type MongoDbStore } from '../../../../shared/store/mongodb/index.ts';
import { freshDatabase, type MongodbServer } from '../../../support/services/index.ts';
import { TABLES } from './scene.ts';

/** A store in a database of its own, whose commands can be listened to. */
export interface WatchedStore extends AsyncDisposable {
  readonly store: MongoDbStore;
  /** Names this store's commands to `failCommand`, and no other user's. */
  readonly appName: string;
  readonly url: string;
  /** The commands sent while `work` ran, in order. */
  commandsOf(work: () => Promise<unknown>): Promise<readonly CommandStartedEvent[]>;
  /** Makes the server fail the next `times` of these commands. `failure` is as in MongoDB's `failCommand`. */
  failNext(times: number, failCommands: readonly string[], failure: Document): Promise<void>;
}

/** `through` changes the address that the store uses, for a proxy. */
export async function openWatched(
  server: MongodbServer,
  options: MongoClientOptions = {},
  through: (url: string) => string = (url) => url,
): Promise<WatchedStore> {
  const database = freshDatabase(server);
  const appName = database.name;
  const url = through(database.url);
  const store = await connectMongoDb({ url, tables: TABLES, options: { monitorCommands: true, appName, ...options } });
  return {
    store,
    appName,
    url,
    async commandsOf(work) {
      const commands: CommandStartedEvent[] = [];
      const listen = (event: CommandStartedEvent) => commands.push(event);
      store.client.on('commandStarted', listen);
      try {
        await work();
      } finally {
        store.client.off('commandStarted', listen);
      }
      return commands;
    },
    async failNext(times, failCommands, failure) {
      await store.client.db('admin').command({
        configureFailPoint: 'failCommand',
        mode: { times },
        data: { failCommands, appName, ...failure },
      });
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

export function namesOf(commands: readonly CommandStartedEvent[]): readonly string[] {
  return commands.map((command) => command.commandName);
}
