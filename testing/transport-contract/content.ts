import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Delivery, MessageProperties, OutgoingMessage } from '../../shared/transport/transport.ts';
import type { Scenario, Stage } from './stage.ts';

const PROPERTIES = {
  messageId: '7a4f3c1e-52f4-4b3e-9a60-0c9b5e0c7c11',
  timestamp: 1_736_929_800,
  correlationId: '5b0f8c1a-1b1e-4c59-8a7e-2f6f8f3e9d10',
  contentType: 'application/json',
  contentEncoding: 'utf-8',
  type: 'task_submit',
  appId: 'lab',
} satisfies MessageProperties;

const HEADERS = {
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  tracestate: 'vendor=opaque',
  'x-hcp-in-reply-to': PROPERTIES.messageId,
  'x-text': 'naïve ✓ 漢字',
  'x-number': 42,
  'x-flag': true,
};

/** Sends one message to the case's callee and answers what arrives. */
async function echo(stage: Stage, message: OutgoingMessage): Promise<Delivery> {
  const transport = await stage.open();
  const inbox = await stage.consume(transport, stage.commands(), { settle: 'ack' });
  assert.equal(await stage.within('the confirm', transport.publish(message)), 'confirmed');
  return inbox.next();
}

/** Node's Buffer and a plain Uint8Array with the same bytes are the same body. */
function assertBytes(actual: Uint8Array, expected: Uint8Array): void {
  assert.equal(Buffer.compare(actual, expected), 0, `${actual.byteLength} bytes arrived as they were sent`);
}

export const content: readonly Scenario[] = [
  {
    name: 'carries every property unchanged',
    verifies: ['HCP-002'],
    async play(stage) {
      const { properties } = await echo(stage, stage.command('{}', PROPERTIES));
      for (const [name, value] of Object.entries(PROPERTIES)) {
        assert.equal(properties[name as keyof typeof PROPERTIES], value, name); // the keys are those of PROPERTIES
      }
    },
  },
  {
    name: 'leaves out what the sender left out',
    verifies: ['HCP-002'],
    async play(stage) {
      const { properties } = await echo(stage, stage.command('{}', { messageId: PROPERTIES.messageId }));
      const { messageId, userId, headers, ...rest } = properties;
      assert.equal(messageId, PROPERTIES.messageId);
      assert.deepEqual(headers ?? {}, {});
      for (const [name, value] of Object.entries(rest)) assert.equal(value, undefined, name);
    },
  },
  {
    name: 'carries headers of each kind, the trace context among them',
    async play(stage) {
      const { properties } = await echo(stage, stage.command('{}', { headers: HEADERS }));
      assert.deepEqual({ ...properties.headers }, HEADERS);
    },
  },
  {
    name: 'carries any bytes as they are',
    async play(stage) {
      const body = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
      assertBytes((await echo(stage, stage.command(body))).body, body);
    },
  },
  {
    name: 'carries a body of one mebibyte',
    async play(stage) {
      const body = randomBytes(1024 * 1024);
      assertBytes((await echo(stage, stage.command(body))).body, body);
    },
  },
  {
    name: 'carries an empty body',
    async play(stage) {
      assertBytes((await echo(stage, stage.command(''))).body, new Uint8Array());
    },
  },
  {
    name: 'keeps its own copy of a body, also when a handler scribbles on what it got',
    async play(stage) {
      const transport = await stage.open();
      await transport.declare(stage.commands());
      const original = Uint8Array.from([1, 2, 3]);
      const body = original.slice();
      await transport.publish(stage.command(body));
      body.fill(0);
      const inbox = await stage.consume(transport, stage.commands());
      const first = await inbox.next();
      assertBytes(first.body, original);
      first.body.fill(9);
      first.retry();
      assertBytes((await inbox.next()).body, original);
    },
  },
  {
    name: 'stamps each message with the login it came from',
    async play(stage) {
      const usual = await stage.open();
      const other = await stage.open({ login: stage.harness.otherLogin });
      const inbox = await stage.consume(usual, stage.commands(), { settle: 'ack' });
      await stage.send(usual, 'from the usual');
      await stage.send(other, 'from the other');
      const [first, second] = await inbox.take(2);
      assert.notEqual(usual.login, undefined);
      assert.equal(first?.properties.userId, usual.login);
      assert.equal(second?.properties.userId, stage.harness.otherLogin);
      assert.equal(other.login, stage.harness.otherLogin);
    },
  },
  {
    name: 'does not believe a sender that claims another login',
    async play(stage) {
      const usual = await stage.open();
      const inbox = await stage.consume(usual, stage.commands(), { settle: 'ack' });
      const forged = { ...PROPERTIES, userId: stage.harness.otherLogin };
      assert.equal(await stage.within('the confirm', usual.publish(stage.command('{}', forged))), 'confirmed');
      assert.equal((await inbox.next()).properties.userId, usual.login);
    },
  },
];
