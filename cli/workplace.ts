import { isHarnessId } from '../shared/ids.ts';
import { Resources } from '../shared/resources.ts';
import { openStore } from '../shared/store/open-store.ts';
import type { Store } from '../shared/store/store.ts';
import { openTransport } from '../shared/transport/open-transport.ts';
import type { Transport } from '../shared/transport/transport.ts';
import type { Io, OptionSpec, Values } from './command.ts';
import { UsageError } from './usage-error.ts';

/** Where a command works: options of every command that needs it. */
export const WORKPLACE_OPTIONS = {
  db: { type: 'string', value: 'FILE', about: 'queues and store in one file (HCP_DB; ./hcp.db)' },
  amqp: { type: 'string', value: 'URL', about: 'a RabbitMQ server instead (HCP_AMQP_URL)' },
  store: { type: 'string', value: 'URL', about: 'mongodb://… or sqlite:… (HCP_STORE_URL)' },
  'callee-id': { type: 'string', value: 'ID', about: 'the callee (dev)' },
  'caller-id': { type: 'string', value: 'ID', about: 'the caller (cli)' },
} as const satisfies Record<string, OptionSpec>;

/** The transport and the store, opened when first asked for. */
export class Workplace implements AsyncDisposable {
  readonly transportUrl: string;
  readonly storeUrl: string;
  readonly calleeId: string;
  readonly callerId: string;
  readonly #resources = new Resources();
  #transport: Promise<Transport> | undefined;
  #store: Promise<Store> | undefined;

  constructor(values: Values, env: Io['env']) {
    const text = (name: string, variable: string) => {
      const value = values[name] ?? env[variable];
      return typeof value === 'string' && value !== '' ? value : undefined;
    };
    const db = text('db', 'HCP_DB') ?? './hcp.db';
    const amqp = text('amqp', 'HCP_AMQP_URL');
    if (values.db !== undefined && values.amqp !== undefined)
      throw new UsageError('--db and --amqp exclude each other');
    // A file that was named counts, whatever the environment says.
    this.transportUrl = values.db === undefined && amqp !== undefined ? amqp : `sqlite:${db}`;
    this.storeUrl = text('store', 'HCP_STORE_URL') ?? `sqlite:${db}`;
    this.calleeId = harnessId('callee-id', text('callee-id', 'HCP_CALLEE_ID') ?? 'dev');
    this.callerId = harnessId('caller-id', text('caller-id', 'HCP_CALLER_ID') ?? 'cli');
  }

  transport(): Promise<Transport> {
    this.#transport ??= this.#keep(openTransport(this.transportUrl));
    return this.#transport;
  }

  store(): Promise<Store> {
    this.#store ??= this.#keep(openStore(this.storeUrl));
    return this.#store;
  }

  /** Whatever else has to be closed at the end, before what was opened earlier. */
  use<T extends AsyncDisposable>(resource: T): T {
    return this.#resources.use(resource);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What is still being opened is closed as well: an open transport would keep the process alive.
    await Promise.allSettled([this.#transport, this.#store]);
    await this.#resources[Symbol.asyncDispose]();
  }

  async #keep<T extends AsyncDisposable>(opening: Promise<T>): Promise<T> {
    try {
      return this.#resources.use(await opening);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new UsageError(error.message, { cause: error });
    }
  }
}

function harnessId(name: string, id: string): string {
  if (isHarnessId(id)) return id;
  throw new UsageError(
    `--${name} must be 1 to 64 letters, digits, dashes or underscores, and begin with a letter or digit`,
  );
}
