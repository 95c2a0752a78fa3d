import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServerDescription, ServerHandle, Source, Unavailable } from './description.ts';
import { execInContainer, killContainer, startContainer } from './docker.ts';
import { kill, launch, run, untilReady } from './processes.ts';
import { probeMongodb, probeRabbitmq } from './readiness.ts';

/** Takes a server away and brings it back. Works in any process of this machine. */
export interface ServerControl {
  /** SIGKILLs the server; resolves when its port is closed. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data; resolves when clients can work. */
  start(): Promise<void>;
}

export interface RabbitmqControl extends ServerControl {
  /** Runs `rabbitmqctl --quiet …` on the broker and returns what it prints. Slow (an Erlang machine starts): use sparingly. */
  ctl(...args: string[]): Promise<string>;
  /** Loads a definitions file (users, vhosts, queues …) given as its JSON text. */
  importDefinitions(json: string): Promise<void>;
}

/** A server that tests can use. `control` is `undefined` for one that is not ours to stop. */
export interface Server<Control extends ServerControl> {
  readonly available: true;
  readonly url: string;
  /** Its TLS listener, if `startServices` was asked for one. */
  readonly tlsUrl?: string;
  readonly version: string;
  readonly source: Source;
  readonly control: Control | undefined;
}

export type RabbitmqServer = Server<RabbitmqControl>;
export type MongodbServer = Server<ServerControl>;

export function rabbitmqFrom(description: ServerDescription): RabbitmqServer | Unavailable {
  return serverFrom(description, (handle, url) => ({
    ...serverControl(handle, () => probeRabbitmq(url)),
    ctl: (...args) => ctl(handle, args),
    importDefinitions: (json) => importDefinitions(handle, json),
  }));
}

export function mongodbFrom(description: ServerDescription): MongodbServer | Unavailable {
  return serverFrom(description, (handle, url) => serverControl(handle, () => probeMongodb(url)));
}

function serverFrom<Control extends ServerControl>(
  description: ServerDescription,
  controlOf: (handle: ServerHandle, url: string) => Control,
): Server<Control> | Unavailable {
  if (!description.available) return description;
  const { handle, ...facts } = description;
  return { ...facts, control: handle === undefined ? undefined : controlOf(handle, facts.url) };
}

function serverControl(handle: ServerHandle, probe: () => Promise<string>): ServerControl {
  if (handle.kind === 'container') {
    return { kill: () => killContainer(handle.id), start: () => startContainer(handle.id, probe) };
  }
  return {
    kill: () => kill(handle.server),
    start: async () => {
      launch(handle.server);
      await untilReady(handle.server, 90_000, probe);
    },
  };
}

function ctl(handle: ServerHandle, args: readonly string[]): Promise<string> {
  if (handle.kind === 'container') return execInContainer(handle.id, ['rabbitmqctl', '--quiet', ...args]);
  if (handle.ctl === undefined) throw new TypeError('This server has no rabbitmqctl');
  return run(handle.ctl, ['--quiet', ...args], { env: handle.server.env, cwd: handle.server.cwd, timeoutMs: 60_000 });
}

async function importDefinitions(handle: ServerHandle, json: string): Promise<void> {
  const name = `definitions-${randomUUID()}.json`;
  if (handle.kind === 'container') {
    // As an argument, not through stdin: testcontainers' exec has none.
    await execInContainer(handle.id, ['sh', '-c', 'printf %s "$1" > "$2"', 'sh', json, `/tmp/${name}`]);
    await ctl(handle, ['import_definitions', `/tmp/${name}`]);
    return;
  }
  const file = join(handle.server.folder, name);
  await writeFile(file, json);
  await ctl(handle, ['import_definitions', file]);
}
