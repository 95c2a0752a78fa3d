import { beforeAll, expect, it } from 'vitest';
import { commandQueue, commandRoute, eventQueue, eventRoute } from '../../../../shared/transport/topology.ts';
import { describeAmqp } from '../../../support/amqp-room.ts';
import { Recorder, recordingLogger } from '../../../support/recorder.ts';
import { verifies } from '../../../support/verifies.ts';

const command = (calleeId: string, text: string) => ({
  route: commandRoute(calleeId),
  body: Buffer.from(text),
  properties: {},
});

describeAmqp('a login with few rights', (room) => {
  let guest = ''; // may use what exists, and declare nothing
  let owner = ''; // may declare its own queue, but not bind it
  beforeAll(async () => {
    guest = await room.login({ configure: '^$', write: '^hcp\\.(commands|dead)$', read: '^hcp\\.cmd\\.ready$' });
    owner = await room.login({ configure: '^hcp\\.cmd\\.mine$', write: '^(hcp\\.cmd\\.mine|hcp\\.dead)$', read: '^$' });
  });

  it('is told when an exchange is missing that it may not declare', async () => {
    await expect(room.connect({ url: guest })).rejects.toMatchObject({
      code: 'topology_missing',
      message: /^Exchange hcp\.commands does not exist and is not ours to declare/,
    });
  });

  verifies('HCP-003', 'works with what an operator has made, and says so once', async () => {
    const operator = await room.connect();
    await operator.declare(commandQueue('ready'));
    const { logger, lines } = recordingLogger();
    const transport = await room.connect({ url: guest, logger });
    const bodies = new Recorder<string>();
    await transport.consume(commandQueue('ready'), (delivery) => {
      bodies.add(Buffer.from(delivery.body).toString());
      delivery.ack();
    });
    expect(await transport.publish(command('ready', 'hello'))).toBe('confirmed');
    await bodies.count(1);
    const warnings = lines.all.filter((line) => line.includes('not ours to declare'));
    expect(warnings.map((line) => JSON.parse(line).name)).toEqual([
      'hcp.commands',
      'hcp.events',
      'hcp.dead',
      'hcp.cmd.ready',
    ]);
  });

  it('needs no dead-letter exchange of ours where the operator has none', async () => {
    await room.connect();
    const raw = await room.raw();
    await raw.deleteExchange('hcp.dead');
    const transport = await room.connect({ url: guest });
    expect(await transport.publish(command('nobody', 'hello'))).toBe('unroutable');
  });

  it('is told when a queue is missing that it may not declare', async () => {
    await room.connect();
    const transport = await room.connect({ url: guest });
    await expect(transport.declare(commandQueue('absent'))).rejects.toMatchObject({
      code: 'topology_missing',
      message: /^Queue hcp\.cmd\.absent does not exist and is not ours to declare/,
    });
  });

  it('is told when it may declare a queue but not bind it', async () => {
    await room.connect();
    const transport = await room.connect({ url: owner });
    await expect(transport.declare(commandQueue('mine', { profile: 'spec' }))).rejects.toMatchObject({
      code: 'topology_forbidden',
      message: /^Queue hcp\.cmd\.mine cannot be bound to hcp\.commands with key mine: ACCESS_REFUSED/,
    });
  });

  it('is told when it may not delete a queue', async () => {
    const operator = await room.connect();
    await operator.declare(commandQueue('ready'));
    const transport = await room.connect({ url: guest });
    await expect(transport.remove(commandQueue('ready'))).rejects.toMatchObject({ code: 'topology_forbidden' });
  });

  verifies('HCP-008', 'is refused the one message it may not send, and the others go on in order', async () => {
    const operator = await room.connect();
    await operator.remove(commandQueue('ready'));
    await operator.declare(commandQueue('ready'));
    await operator.declare(eventQueue('alpha'));
    const transport = await room.connect({ url: guest });
    const forbidden = { ...command('ready', 'forged'), route: eventRoute('alpha', null, 'event') };
    const outcomes = await Promise.allSettled([
      transport.publish(command('ready', 'm1')),
      transport.publish(forbidden),
      transport.publish(command('ready', 'm2')),
      transport.publish(command('ready', 'm3')),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    expect(outcomes[1]).toMatchObject({
      reason: { code: 'publish_refused', reason: 'access_refused', retryable: false },
    });
    const bodies = new Recorder<string>();
    await operator.consume(commandQueue('ready'), (delivery) => {
      bodies.add(Buffer.from(delivery.body).toString());
      delivery.ack();
    });
    // A channel that dies takes unconfirmed messages with it that may have arrived: they come twice, never out of order.
    const arrived = await bodies.until((all) => all.includes('m3'));
    expect([...new Set(arrived)]).toEqual(['m1', 'm2', 'm3']);
  });

  verifies('HCP-008', 'waits for an exchange that was deleted under it and that it may not make again', async () => {
    await room.connect();
    const { logger, lines } = recordingLogger();
    const transport = await room.connect({ url: guest, logger });
    const raw = await room.raw();
    await raw.deleteExchange('hcp.commands');
    const published = transport.publish(command('nobody', 'm'));
    await lines.until((all) => all.some((line) => /Publishing cannot go on yet/.test(line)));
    await raw.assertExchange('hcp.commands', 'direct', { durable: true });
    expect(await published).toBe('unroutable');
  });

  it('is told that an exchange is missing that nobody promised', async () => {
    await room.connect();
    await (await room.raw()).deleteExchange('hcp.dead');
    const transport = await room.connect({ url: guest });
    const letter = { ...command('ready', 'dead'), route: { exchange: 'hcp.dead', routingKey: 'x' } as const };
    await expect(transport.publish(letter)).rejects.toMatchObject({
      code: 'topology_missing',
      message: /^Exchange hcp\.dead does not exist/,
    });
    expect(await transport.publish(command('nobody', 'still alive'))).toBe('unroutable');
  });

  it('that lies about its name has its messages refused', async () => {
    await room.connect();
    const transport = await room.connect({ url: guest, login: 'somebody-else' });
    await expect(transport.publish(command('ready', 'forged'))).rejects.toMatchObject({
      code: 'publish_refused',
      reason: 'precondition_failed',
      retryable: false,
    });
  });
});

describeAmqp('an exchange that is deleted while we publish', (room) => {
  verifies(['HCP-003', 'HCP-008'], 'is made again with its queues, and the message is sent again', async () => {
    const transport = await room.connect();
    await transport.declare(commandQueue('lab'));
    const raw = await room.raw();
    await raw.deleteExchange('hcp.commands');
    expect(await transport.publish(command('lab', 'm1'))).toBe('confirmed');
    expect(await raw.get('hcp.cmd.lab')).toMatchObject({ content: Buffer.from('m1') });
  });
});
