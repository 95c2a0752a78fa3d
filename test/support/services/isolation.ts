import { randomBytes } from 'node:crypto';
import { MongoClient } from 'mongodb';
import type { MongodbServer, RabbitmqControl, RabbitmqServer } from './control.ts';

/** A place of its own on a shared server; disposing removes it. */
export interface Isolated extends AsyncDisposable {
  readonly url: string;
  readonly name: string;
}

/**
 * A fresh vhost in which the URL's user may do everything. On a broker that is not ours to control, the URL as it is:
 * use names of your own there.
 */
export async function createVhost(broker: RabbitmqServer): Promise<Isolated> {
  const { control } = broker;
  const url = new URL(broker.url);
  if (control === undefined) {
    return {
      url: broker.url,
      name: decodeURIComponent(url.pathname.slice(1)) || '/',
      async [Symbol.asyncDispose]() {},
    };
  }
  const name = uniqueName();
  url.pathname = `/${name}`;
  await control.ctl('add_vhost', name);
  await control.ctl('set_permissions', '--vhost', name, decodeURIComponent(url.username), '.*', '.*', '.*');
  return {
    url: url.href,
    name,
    async [Symbol.asyncDispose]() {
      await control.ctl('delete_vhost', name);
    },
  };
}

/**
 * Before a kill: RabbitMQ 3.10 writes its list of quorum queues lazily, and one declared less than a second before the
 * kill stays dead for ever, which is no fault of ours.
 */
export async function settleQueues(control: RabbitmqControl): Promise<void> {
  await control.ctl('eval', '[dets:sync(Table) || Table <- dets:all()].');
}

/** A database name nobody uses, and a URL that has it as its default database. */
export function freshDatabase(server: MongodbServer): Isolated {
  const name = uniqueName();
  return {
    url: withDatabase(server.url, name),
    name,
    async [Symbol.asyncDispose]() {
      const client = new MongoClient(server.url);
      try {
        await client.db(name).dropDatabase();
      } finally {
        await client.close();
      }
    },
  };
}

function withDatabase(url: string, name: string): string {
  // Not by `URL`: it refuses a list of hosts.
  const [, hosts = url, database = '', query = ''] = /^([^/]+\/\/[^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url) ?? [];
  const options = new URLSearchParams(query);
  // The database of the path is also where users are looked up, unless something else is said.
  if (hosts.includes('@') && !options.has('authSource')) options.set('authSource', database || 'admin');
  return `${hosts}/${name}?${options}`;
}

function uniqueName(): string {
  return `hcp-test-${randomBytes(6).toString('hex')}`;
}
