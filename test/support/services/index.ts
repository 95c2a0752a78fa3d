import { describe, inject, it } from 'vitest';
import type { ServerControl } from './control.ts';
import { type MongodbServer, mongodbFrom, type RabbitmqServer, rabbitmqFrom, type Server } from './control.ts';
import type { Unavailable } from './description.ts';
import type {} from './global-setup.ts';

export type { MongodbServer, RabbitmqControl, RabbitmqServer, ServerControl } from './control.ts';
export type { Source, Unavailable } from './description.ts';
export { createVhost, freshDatabase, type Isolated, settleQueues } from './isolation.ts';
export { type StartedServices, startServices, startTlsRabbitmq, startUnfitMongodb } from './start.ts';

/** The run's RabbitMQ. Other test files use it too: to kill one, start a private one with `startServices`. */
export function rabbitmq(): RabbitmqServer | Unavailable {
  return rabbitmqFrom(inject('services').rabbitmq);
}

/** The run's MongoDB, a replica set. Other test files use it too: to kill one, start a private one with `startServices`. */
export function mongodb(): MongodbServer | Unavailable {
  return mongodbFrom(inject('services').mongodb);
}

/** Which server it is, for the name of a suite: `mongodb 7.0.15 (portable build under Wine)`. */
export function serverLabel(adapter: string, server: Server<ServerControl> | Unavailable): string {
  return server.available ? `${adapter} ${server.version} (${server.source})` : adapter;
}

/** A `describe` whose tests need a server: without it there is one skipped test that says why. */
export function describeWith<S extends Server<ServerControl>>(
  name: string,
  server: S | Unavailable,
  body: (server: S) => void,
): void {
  describe(name, () => {
    if (server.available) body(server);
    else it('needs its server', ({ skip }) => skip(server.reason));
  });
}
