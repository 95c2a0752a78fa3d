import { randomBytes } from 'node:crypto';
import type { TaskSubmitPayload } from '../../../schemas/types.ts';
import { buildMessage } from '../../../shared/messages/build.ts';
import { connectAmqp } from '../../../shared/transport/amqp/index.ts';
import { connectSqlite } from '../../../shared/transport/sqlite/index.ts';
import { commandRoute } from '../../../shared/transport/topology.ts';
import type { Transport } from '../../../shared/transport/transport.ts';
import { withAddress } from '../../support/amqp-room.ts';
import { rabbitmq } from '../../support/services/index.ts';
import type { Stack } from '../../support/stacks.ts';
import type { World } from '../../support/world.ts';

/** A link under a login of its own, which the broker vouches for. */
export interface LoggedIn extends AsyncDisposable {
  readonly login: string;
  readonly transport: Transport;
  /** Publishes a submit in the name of whomever. */
  submit(world: World, callerId: string, messageId: string, task?: Partial<TaskSubmitPayload>): Promise<void>;
}

/** Logs in, as the embedded transport lets everybody do and RabbitMQ a user that exists. */
export async function logIn(stack: Stack, login = `login-${randomBytes(4).toString('hex')}`): Promise<LoggedIn> {
  await using resources = new AsyncDisposableStack();
  const transport = resources.use(
    stack.transportUrl.startsWith('sqlite:')
      ? await connectSqlite({ path: stack.transportUrl.slice('sqlite:'.length), pollMs: 2, login })
      : await connectAmqp({ url: await addUser(stack.transportUrl, login, resources) }),
  );
  const kept = resources.move();
  return {
    login,
    transport,
    async submit({ calleeId }, callerId, messageId, task = {}) {
      const built = buildMessage({
        type: 'task_submit',
        sessionId: null,
        senderId: callerId,
        messageId: messageId as never, // a brand, and made just so
        payload: { capability: 'test.task', caller_id: callerId, intent: 'Do it', inputs: {}, ...task },
      });
      await transport.publish({ route: commandRoute(calleeId), body: built.body, properties: built.properties });
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function addUser(url: string, login: string, resources: AsyncDisposableStack): Promise<string> {
  const broker = rabbitmq();
  const control = broker.available ? broker.control : undefined;
  if (control === undefined) throw new Error('This broker is not ours to change');
  await control.ctl('add_user', login, login);
  resources.defer(async () => void (await control.ctl('delete_user', login)));
  const vhost = decodeURIComponent(new URL(url).pathname.slice(1));
  await control.ctl('set_permissions', '--vhost', vhost, login, '.*', '.*', '.*');
  return withAddress(url, { username: login, password: login });
}
