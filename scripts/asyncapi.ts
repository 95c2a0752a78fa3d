import { bundleSchemas, type SchemaFile } from './schema-bundle.ts';

const COMMANDS = ['task_submit', 'abort', 'x-replay', 'x-status', 'x-pause', 'x-resume'] as const;
const EVENTS = ['task_accepted', 'task_rejected', 'event', 'task_completed', 'task_failed'] as const;

/** The whole protocol as an AsyncAPI 3.0 document: channels with their AMQP bindings, messages, payloads. */
export function asyncApiDocument(files: readonly SchemaFile[]): object {
  const bundled = bundleSchemas(files, '#/components/schemas/');
  const titleOf = (name: string) => String(files.find((file) => file.name === name)?.schema.title);
  const message = (name: string) => [name, { $ref: `#/components/messages/${name}` }] as const;
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'HCP, the Harness Communication Protocol',
      version: '1.0.0',
      description:
        'One AI harness (the caller) delegates a task to another (the callee) over AMQP and follows its session.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    channels: {
      commands: {
        address: '{callee_id}',
        title: 'Command channel',
        description:
          'Caller to callee: exchange hcp.commands, routing key {callee_id}, into the queue hcp.cmd.{callee_id}.',
        parameters: { callee_id: { description: 'The callee, and the name of its queue.' } },
        messages: Object.fromEntries(COMMANDS.map(message)),
        bindings: routingKey('hcp.commands', 'direct'),
      },
      events: {
        address: '{caller_id}.{session_id}.{type}',
        title: 'Event channel',
        description:
          'Callee to caller: exchange hcp.events, into the queue hcp.evt.{caller_id} bound by {caller_id}.#. The session word is "none" when there is no session.',
        parameters: {
          caller_id: { description: 'The caller, and the name of its queue.' },
          session_id: { description: 'The session, or "none".' },
          type: { description: 'The type of the message.', enum: [...EVENTS] },
        },
        messages: Object.fromEntries(EVENTS.map(message)),
        bindings: routingKey('hcp.events', 'topic'),
      },
    },
    operations: {
      sendCommand: operation(
        'commands',
        'send',
        'A caller submits a task, aborts its session or, where that was negotiated, asks about it.',
        COMMANDS,
      ),
      receiveEvent: operation('events', 'receive', 'A caller follows its sessions.', EVENTS),
    },
    components: {
      messages: Object.fromEntries(
        [...COMMANDS, ...EVENTS].map((name) => {
          const { examples, description, title } = bundled[titleOf(name)] ?? {};
          return [
            name,
            {
              name,
              title,
              summary: description,
              contentType: 'application/json',
              correlationId: {
                description:
                  'The session; absent while there is none. The same value is the AMQP property correlation_id.',
                location: '$message.payload#/session_id',
              },
              payload: { $ref: `#/components/schemas/${titleOf(name)}` },
              bindings: { amqp: { contentEncoding: 'utf-8', messageType: name, bindingVersion: '0.3.0' } },
              examples: (examples as object[]).map((payload) => ({ payload })),
            },
          ];
        }),
      ),
      schemas: bundled,
    },
  };
}

function routingKey(name: string, type: 'direct' | 'topic'): object {
  const exchange = { name, type, durable: true, autoDelete: false };
  return { amqp: { is: 'routingKey', exchange, bindingVersion: '0.3.0' } };
}

function operation(channel: string, action: 'send' | 'receive', summary: string, names: readonly string[]): object {
  return {
    action,
    summary,
    channel: { $ref: `#/channels/${channel}` },
    messages: names.map((name) => ({ $ref: `#/channels/${channel}/messages/${name}` })),
    bindings: { amqp: { deliveryMode: 2, mandatory: true, timestamp: true, ack: true, bindingVersion: '0.3.0' } },
  };
}
