import { once } from 'node:events';
import { createCallee } from '../callee/index.ts';
import type { CalleeMessage } from '../caller/index.ts';
import { parseMessage } from '../shared/messages/parse.ts';
import type { Transport } from '../shared/transport/transport.ts';
import { textOf } from './arguments.ts';
import type { CalleeModule } from './callee-module.ts';
import type { Call, Io, OptionSpec } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { jsonLine, paint, paintedMessage } from './output.ts';
import { UsageError } from './usage-error.ts';

/** Options of every command that runs a callee. */
export const SERVE_OPTIONS = {
  'instance-id': {
    type: 'string',
    value: 'ID',
    about: 'name of this process: under the same name it continues its sessions at once',
  },
} as const satisfies Record<string, OptionSpec>;

/** Runs a callee and tells what it says, a line each, until Ctrl-C: for a callee that is how it ends well. */
export async function serve(call: Call, module: CalleeModule, greeting: readonly string[]): Promise<ExitCode> {
  const { io, json, workplace, values } = call;
  // One after the other: when one cannot be opened, the other is not left half open.
  const transport = await workplace.transport();
  const store = await workplace.store();
  const { calleeId } = workplace;
  const instanceId = textOf(values, 'instance-id');
  const callee = fromArguments(() => {
    const made = createCallee({
      ...module.options,
      ...{ calleeId, store, transport: overheard(transport, (message) => tell(io, json, message)) },
      ...(module.policy && { policy: module.policy }),
      ...(instanceId !== undefined && { instanceId }),
    });
    for (const { declaration, executor, options } of module.capabilities) {
      made.capability(declaration, executor, options);
    }
    return made;
  });
  workplace.use(callee);
  await callee.start();
  const capabilities = module.capabilities.map(({ declaration }) => declaration.name);
  if (json) io.out(jsonLine({ listening: { callee_id: calleeId, capabilities } }));
  else for (const line of greeting) io.out(line);
  if (!io.signal.aborted) await once(io.signal, 'abort');
  await callee.close();
  if (json) io.out(jsonLine({ closed: { callee_id: calleeId } }));
  else io.out(`Closed: what was not finished goes on when the callee ${calleeId} is back`);
  return EXIT.ok;
}

/** A transport that lets us hear what is published to callers, once the broker has it. */
function overheard(transport: Transport, hear: (message: CalleeMessage) => void): Transport {
  return {
    login: transport.login,
    link: transport.link,
    get status() {
      return transport.status;
    },
    watch: (listener) => transport.watch(listener),
    declare: (queue) => transport.declare(queue),
    remove: (queue) => transport.remove(queue),
    retire: (queue) => transport.retire(queue),
    consume: (queue, handler, options) => transport.consume(queue, handler, options),
    close: () => transport.close(),
    [Symbol.asyncDispose]: () => transport.close(),
    async publish(outgoing, options) {
      const outcome = await transport.publish(outgoing, options);
      if (outgoing.route.exchange === 'hcp.events') {
        const parsed = parseMessage(outgoing.body, outgoing.properties);
        // To callers a callee sends nothing else.
        if (parsed.ok) hear(parsed.message as CalleeMessage);
      }
      return outcome;
    },
  };
}

function tell(io: Io, json: boolean, message: CalleeMessage): void {
  const session = paint(io, 'cyan', message.session_id?.slice(0, 8) ?? '-'.repeat(8));
  io.out(json ? jsonLine(message) : `${session}  ${paintedMessage(io, message)}`);
}

/** What createCallee refuses was typed, or written in the module. */
function fromArguments<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  }
}
