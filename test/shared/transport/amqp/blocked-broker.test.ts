import { afterEach, expect, it } from 'vitest';
import { commandQueue, commandRoute } from '../../../../shared/transport/topology.ts';
import type { Transport, TransportStatus } from '../../../../shared/transport/transport.ts';
import { type AmqpRoom, describeAmqp } from '../../../support/amqp-room.ts';
import { Recorder, RecordingClock } from '../../../support/recorder.ts';
import { verifies } from '../../../support/verifies.ts';

const message = (text: string) => ({ route: commandRoute('lab'), body: Buffer.from(text), properties: {} });

/** Makes the broker short of memory, and the transport notice: only those who publish are told. */
async function block(room: AmqpRoom, transport: Transport): Promise<{ unanswered: Promise<unknown> }> {
  const statuses = new Recorder<TransportStatus>();
  const unwatch = transport.watch(statuses.add);
  await room.control.ctl('set_vm_memory_high_watermark', 'absolute', '1');
  const unanswered = transport.publish(message('while blocked'));
  await statuses.until((all) => all.includes('blocked'));
  unwatch();
  return { unanswered };
}

const unblock = (room: AmqpRoom) => room.control.ctl('set_vm_memory_high_watermark', '0.4');

describeAmqp('a broker short of memory', (room) => {
  afterEach(async () => void (await unblock(room)));

  verifies('HCP-008', 'holds publishes back until it has room, and then takes them all in order', async () => {
    const transport = await room.connect();
    const bodies = new Recorder<string>();
    await transport.consume(commandQueue('lab'), (delivery) => {
      bodies.add(Buffer.from(delivery.body).toString());
      delivery.ack();
    });
    const statuses = new Recorder<TransportStatus>();
    transport.watch(statuses.add);
    const { unanswered } = await block(room, transport);
    const more = ['m1', 'm2', 'm3'].map((text) => transport.publish(message(text)));
    expect(transport.status).toBe('blocked');
    await unblock(room);
    expect(await Promise.all([unanswered, ...more])).toEqual(['confirmed', 'confirmed', 'confirmed', 'confirmed']);
    expect(await bodies.count(4)).toEqual(['while blocked', 'm1', 'm2', 'm3']);
    expect(statuses.all).toEqual(['blocked', 'open']);
  });

  it('does not keep consumers from what is there, nor anybody from declaring', async () => {
    const transport = await room.connect();
    await transport.declare(commandQueue('lab'));
    await transport.publish(message('before'));
    const { unanswered } = await block(room, transport);
    const bodies = new Recorder<string>();
    await transport.declare(commandQueue('other'));
    await transport.consume(commandQueue('lab'), (delivery) => {
      bodies.add(Buffer.from(delivery.body).toString());
      delivery.ack();
    });
    expect(await bodies.count(1)).toEqual(['before']);
    await unblock(room);
    await unanswered;
  });

  it('is not taken for a dead link, however long it takes', async () => {
    const clock = new RecordingClock();
    const transport = await room.connect({ clock, confirmTimeoutMs: 5000 });
    await transport.declare(commandQueue('lab'));
    const { unanswered } = await block(room, transport);
    clock.advance(3_600_000);
    expect(transport.status).toBe('blocked');
    await unblock(room);
    expect(await unanswered).toBe('confirmed');
  });

  it('lets a publisher lose patience, and a transport be closed', async () => {
    const transport = await room.connect({ closeTimeoutMs: 50 });
    const { unanswered } = await block(room, transport);
    const patience = new AbortController();
    const given = transport.publish(message('given up'), { signal: patience.signal }).catch((error: unknown) => error);
    const stuck = unanswered.catch((error: unknown) => error);
    patience.abort(new Error('no longer wanted'));
    expect(await given).toMatchObject({ message: 'no longer wanted' });
    await transport.close();
    expect(await stuck).toMatchObject({ code: 'transport_closed' });
  });
});
