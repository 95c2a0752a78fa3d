import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCommandChannel, type ReceivedCommand } from '../../callee/index.ts';
import { type CalleeMessage, openEventChannel } from '../../caller/index.ts';
import type { Delivery, MessageProperties, QueueDeclaration, Transport } from '../../shared/index.ts';
import type { Logger } from '../../shared/logger.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import type { MessageFault, Salvage } from '../../shared/messages/fault.ts';
import { commandQueue, commandRoute, deadLetterQueue, eventQueue } from '../../shared/transport/topology.ts';
import { bytes, eventObject, M1, S1, submitObject, wireProperties } from '../support/messages.ts';
import { transportFixtures } from '../support/transport-fixtures.ts';
import { verifies } from '../support/verifies.ts';

/** What has arrived, and a promise for the next. */
function inbox<T>() {
  const arrived: T[] = [];
  const waiting: ((value: T) => void)[] = [];
  return {
    put(value: T): void {
      const taker = waiting.shift();
      if (taker) taker(value);
      else arrived.push(value);
    },
    next(): Promise<T> {
      const value = arrived.shift();
      return value === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(value);
    },
    get size() {
      return arrived.length;
    },
  };
}

function recordingLogger() {
  const lines: string[] = [];
  const write = (fields: object, message: string) => lines.push(JSON.stringify({ ...fields, message }));
  const logger: Logger = { debug: write, info: write, warn: write, error: write };
  return { logger, lines };
}

for (const fixture of transportFixtures) {
  describe(`channels over ${fixture.adapter}`, () => {
    const { unavailable } = fixture;
    if (unavailable !== undefined) return it('needs its broker', ({ skip }) => skip(unavailable));
    let transport: Transport;
    let stop: () => Promise<void>;
    let run = 0;

    beforeAll(async () => {
      const harness = await fixture.start();
      transport = await harness.open();
      stop = async () => {
        await transport.close();
        await harness[Symbol.asyncDispose]();
      };
    });
    afterAll(() => stop?.());

    /** One callee, one caller, both listening; fresh ids, so that no test sees another's messages. */
    async function pair(handler: (command: ReceivedCommand) => Promise<void> = async () => {}) {
      const id = `${++run}-${process.pid}`;
      const [calleeId, callerId] = [`lab${id}`, `alpha${id}`];
      const { logger, lines } = recordingLogger();
      const commands = inbox<ReceivedCommand>();
      const events = inbox<CalleeMessage>();
      const invalid = inbox<{ fault: MessageFault; salvage: Salvage }>();
      const dead = inbox<Delivery>();
      const callee = openCommandChannel({ calleeId, transport, logger });
      const caller = openEventChannel({
        callerId,
        transport,
        logger,
        onInvalid: (fault, salvage) => invalid.put({ fault, salvage }),
      });
      const deadLetters = async (queue: QueueDeclaration) =>
        transport.consume(deadLetterQueue(queue), (letter) => {
          letter.ack();
          dead.put(letter);
        });
      const consumers = [
        await callee.consume(async (command) => {
          await handler(command);
          commands.put(command);
        }),
        await caller.consume(async ({ message }) => events.put(message)),
        await deadLetters(commandQueue(calleeId)),
        await deadLetters(eventQueue(callerId)),
      ];
      const sendRaw = (body: Uint8Array, properties: MessageProperties) =>
        transport.publish({ route: commandRoute(calleeId), body, properties });
      return {
        ...{ callee, caller, calleeId, callerId, commands, events, invalid, dead, lines, sendRaw },
        async [Symbol.asyncDispose]() {
          for (const consumer of consumers) await consumer.close();
          for (const queue of [commandQueue(calleeId), eventQueue(callerId)]) {
            await transport.remove(queue);
            await transport.remove(deadLetterQueue(queue));
          }
        },
      };
    }

    const submitFrom = (callerId: string) =>
      buildMessage({
        type: 'task_submit',
        sessionId: null,
        senderId: callerId,
        payload: { capability: 'demo.count', caller_id: callerId, intent: 'Count', inputs: { to: 3 } },
      });

    verifies(
      ['HCP-001', 'HCP-002', 'HCP-005'],
      'a submit reaches the callee, its answer the caller, both validated',
      async () => {
        await using world = await pair();
        const submit = submitFrom(world.callerId);
        expect(await world.caller.publish(world.calleeId, submit)).toBe('confirmed');
        const command = await world.commands.next();
        expect([command.message, command.appId]).toEqual([submit.message, world.callerId]);
        const payload = {
          session_token: 'canary-token',
          risk_level: 'R1',
          in_reply_to: submit.message.message_id,
        } as const;
        const accepted = buildMessage({ type: 'task_accepted', sessionId: S1, senderId: world.calleeId, payload });
        expect(await world.callee.publish(world.callerId, accepted)).toBe('confirmed');
        expect(await world.events.next()).toEqual(accepted.message);
        expect(world.lines.join()).not.toContain('canary-token');
      },
    );

    verifies('V-125', 'a submit to a callee that does not exist is told to be unroutable at once', async () => {
      await using world = await pair();
      expect(await world.caller.publish('nobody', submitFrom(world.callerId))).toBe('unroutable');
    });

    const answered: [string, string[], object, string, RegExp][] = [
      [
        'without an intent',
        ['V-42', 'HCP-007'],
        submitObject({ intent: undefined }),
        'invalid_input',
        /\/payload\/intent is missing/,
      ],
      [
        'of another major version',
        ['V-35', 'HCP-006'],
        submitObject({}, { hcp_version: '2.0' }),
        'unsupported_version',
        /major version/,
      ],
      ['with a session id', ['V-47'], submitObject({}, { session_id: S1 }), 'invalid_input', /\/session_id/],
      [
        'with a bad limit',
        ['V-44'],
        submitObject({ constraints: { max_duration: '1h' } }),
        'invalid_input',
        /max_duration/,
      ],
      [
        'with a caller id that is no address',
        ['V-41'],
        submitObject({ caller_id: 'a.b' }),
        'invalid_input',
        /caller_id/,
      ],
      [
        'with a message id that is none',
        ['V-39'],
        submitObject({}, { message_id: 'msg-001' }),
        'invalid_input',
        /message_id/,
      ],
    ];
    for (const [what, ids, body, code, text] of answered) {
      verifies(ids, `a submit ${what} is rejected with ${code}, and the next command is handled`, async () => {
        await using world = await pair();
        const addressed = structuredClone(body) as { payload: { caller_id: string } };
        if (addressed.payload.caller_id === 'alpha') addressed.payload.caller_id = world.callerId;
        await world.sendRaw(bytes(addressed), wireProperties({ appId: world.callerId, type: 'task_submit' }));
        await world.caller.publish(world.calleeId, submitFrom(world.callerId));
        const rejected = await world.events.next();
        expect(rejected).toMatchObject({ type: 'task_rejected', session_id: null, payload: { reason_code: code } });
        expect(rejected.type === 'task_rejected' && rejected.payload.reason_message).toMatch(text);
        expect((await world.commands.next()).message.type).toBe('task_submit');
        expect(world.dead.size).toBe(0);
      });
    }

    verifies(
      ['V-31', 'V-60', 'HCP-012'],
      'unreadable and oversized submits are answered through their properties',
      async () => {
        await using world = await pair();
        const properties = wireProperties({ appId: world.callerId, type: 'task_submit', messageId: M1 });
        for (const body of [bytes('{{{'), Buffer.alloc(1024 * 1024 + 1, 0x20)]) {
          await world.sendRaw(body, properties);
          expect(await world.events.next()).toMatchObject({
            type: 'task_rejected',
            payload: { reason_code: 'invalid_input', in_reply_to: M1 },
          });
        }
      },
    );

    const buried: [string, string[], Uint8Array, MessageProperties][] = [
      ['bytes that are no message', ['V-30', 'HCP-007'], bytes('hello?'), {}],
      ['a submit without any address', ['V-40'], bytes(submitObject({ caller_id: undefined })), {}],
      ['a type nobody knows', ['V-61'], bytes(submitObject({}, { type: 'pause' })), wireProperties()],
      ['a message for the other direction', ['V-61'], bytes(eventObject()), wireProperties()],
      [
        'an abort of another major version',
        ['V-38'],
        bytes(submitObject({}, { type: 'abort', session_id: S1, hcp_version: '2.0' })),
        wireProperties(),
      ],
      [
        'an abort without a session',
        ['V-75'],
        bytes(submitObject({}, { type: 'abort', payload: {} })),
        wireProperties(),
      ],
    ];
    for (const [what, ids, body, properties] of buried) {
      verifies(
        ids,
        `${what} among the commands: dead-lettered unchanged, nobody is answered, the next is handled`,
        async () => {
          await using world = await pair();
          await world.sendRaw(body, properties);
          await world.caller.publish(world.calleeId, submitFrom(world.callerId));
          expect(Buffer.compare((await world.dead.next()).body, body)).toBe(0);
          expect((await world.commands.next()).message.type).toBe('task_submit');
          expect(world.events.size).toBe(0);
        },
      );
    }

    verifies(
      ['V-114', 'V-118', 'HCP-007'],
      'a bad message among the events is reported, dead-lettered, and the stream goes on',
      async () => {
        await using world = await pair();
        const route = { exchange: 'hcp.events', routingKey: `${world.callerId}.${S1}.event` } as const;
        const bad = bytes(eventObject({ data: {} }));
        await transport.publish({ route, body: bad, properties: wireProperties() });
        await transport.publish({ route, body: bytes('???'), properties: {} });
        await transport.publish({ route, body: bytes(eventObject()), properties: wireProperties() });
        expect(await world.invalid.next()).toMatchObject({
          fault: { code: 'schema', pointer: '/payload/data/stage' },
          salvage: { sessionId: S1, sequence: 4 },
        });
        expect((await world.invalid.next()).fault.code).toBe('not_json');
        expect(Buffer.compare((await world.dead.next()).body, bad)).toBe(0);
        expect((await world.events.next()).type).toBe('event');
      },
    );

    verifies('V-117', 'a type nobody knows among the events is acked and told', async () => {
      await using world = await pair();
      const route = { exchange: 'hcp.events', routingKey: `${world.callerId}.${S1}.pause` } as const;
      await transport.publish({
        route,
        body: bytes(submitObject({}, { type: 'pause' })),
        properties: wireProperties(),
      });
      await transport.publish({ route, body: bytes(eventObject()), properties: wireProperties() });
      expect((await world.events.next()).type).toBe('event');
      expect([(await world.invalid.next()).fault.code, world.dead.size]).toEqual(['unknown_type', 0]);
    });

    verifies(['HCP-004', 'HCP-007'], 'a command whose handler fails comes again', async () => {
      let calls = 0;
      await using world = await pair(async () => {
        if (++calls === 1) throw new Error('The store is away');
      });
      await world.caller.publish(world.calleeId, submitFrom(world.callerId));
      await world.commands.next();
      expect(calls).toBe(2);
    });

    verifies('HCP-014', 'nothing of a refused message but ids and rule names is logged', async () => {
      await using world = await pair();
      const secret = 'canary-5f3759df';
      await world.sendRaw(
        bytes(submitObject({ intent: 7, inputs: { secret } })),
        wireProperties({ appId: world.callerId }),
      );
      await world.sendRaw(bytes(`{"session_token":"${secret}"`), wireProperties());
      await world.dead.next();
      expect(world.lines.length).toBeGreaterThanOrEqual(2);
      expect(world.lines.join()).not.toContain(secret);
    });

    verifies('HCP-013', 'an impossible id is refused before anything is opened', () => {
      expect(() => openCommandChannel({ calleeId: 'lab.2', transport })).toThrow(/^calleeId must be/);
      expect(() => openEventChannel({ callerId: '#', transport })).toThrow(/^callerId must be/);
    });

    verifies('HCP-016', 'closing waits for the command in hand, then takes no more', async () => {
      const id = `closing${++run}-${process.pid}`;
      const callee = openCommandChannel({ calleeId: id, transport });
      const started = inbox<ReceivedCommand>();
      let finish: () => void = () => {};
      const consumer = await callee.consume(async (command) => {
        started.put(command);
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      });
      const caller = openEventChannel({ callerId: id, transport });
      await caller.publish(id, submitFrom(id));
      await started.next();
      const order: string[] = [];
      const closed = consumer.close().then(() => order.push('closed'));
      await caller.publish(id, submitFrom(id));
      order.push('handler ends');
      finish();
      await closed;
      expect([order, started.size]).toEqual([['handler ends', 'closed'], 0]);
      await transport.remove(commandQueue(id));
      await transport.remove(deadLetterQueue(commandQueue(id)));
    });
  });
}
