import { randomBytes } from 'node:crypto';
import { type ConfirmChannel, connect } from 'amqplib';
import { afterAll, afterEach, beforeAll, it } from 'vitest';
import { type AmqpOptions, connectAmqp } from '../../shared/transport/amqp/index.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { IMPATIENT } from './amqp-harness.ts';
import { createVhost, describeWith, type Isolated, type RabbitmqControl, rabbitmq } from './services/index.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** What a login may do in the room's vhost: three patterns of RabbitMQ. */
export interface Rights {
  readonly configure: string;
  readonly write: string;
  readonly read: string;
}

/** A vhost of a test file's own, with a second, raw way in. What a test opens is closed at its end. */
export interface AmqpRoom {
  readonly url: string;
  readonly vhost: string;
  readonly control: RabbitmqControl;
  /** Impatient, unless told otherwise. */
  connect(options?: Partial<AmqpOptions>): Promise<Transport>;
  /** Plain amqplib, to see and to do what our transport would not. */
  raw(url?: string): Promise<ConfirmChannel>;
  proxy(): Promise<{ readonly proxy: TcpProxy; readonly url: string }>;
  /** The URL of a new login with these rights. */
  login(rights: Rights): Promise<string>;
  /** What `rabbitmqctl list_…` says of this vhost. */
  list<Row>(what: string, ...columns: string[]): Promise<Row[]>;
}

/** A `describe` that has a vhost of its own on a broker we control. */
export function describeAmqp(name: string, body: (room: AmqpRoom) => void): void {
  describeWith(name, rabbitmq(), (broker) => {
    const { control } = broker;
    if (control === undefined) {
      it('needs a broker it may change', ({ skip }) => skip('This broker is not ours to change'));
      return;
    }
    let vhost: Isolated | undefined;
    let stack = new AsyncDisposableStack();
    const logins: string[] = [];
    beforeAll(async () => {
      vhost = await createVhost(broker);
    });
    afterEach(async () => {
      const used = stack;
      stack = new AsyncDisposableStack();
      await used.disposeAsync();
    });
    afterAll(async () => {
      await vhost?.[Symbol.asyncDispose]();
      for (const login of logins) await control.ctl('delete_user', login);
    });

    const home = (): Isolated => {
      if (vhost === undefined) throw new Error('The vhost was not made');
      return vhost;
    };
    body({
      control,
      get url() {
        return home().url;
      },
      get vhost() {
        return home().name;
      },
      async connect(options = {}) {
        return stack.use(await connectAmqp({ ...IMPATIENT, url: home().url, ...options }));
      },
      async raw(url = home().url) {
        const connection = await connect(url);
        connection.on('error', () => {});
        stack.defer(() => connection.close().catch(() => {})); // a test may have killed it
        const channel = await connection.createConfirmChannel();
        channel.on('error', () => {});
        return channel;
      },
      async proxy() {
        const { hostname, port } = new URL(home().url);
        const proxy = stack.use(await startTcpProxy({ host: hostname, port: Number(port) }));
        return { proxy, url: withAddress(home().url, { port: String(proxy.port) }) };
      },
      async login({ configure, write, read }) {
        const login = `login-${randomBytes(4).toString('hex')}`;
        logins.push(login);
        await control.ctl('add_user', login, login);
        await control.ctl('set_permissions', '--vhost', home().name, login, configure, write, read);
        return withAddress(home().url, { username: login, password: login });
      },
      async list(what, ...columns) {
        return JSON.parse(
          await control.ctl(`list_${what}`, '--vhost', home().name, '--formatter', 'json', '--silent', ...columns),
        );
      },
    });
  });
}

/** The URL with some of its parts replaced. */
export function withAddress(
  url: string,
  parts: Partial<Record<'port' | 'username' | 'password' | 'pathname', string>>,
): string {
  return Object.assign(new URL(url), parts).href;
}
