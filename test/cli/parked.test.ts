import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Row } from '../../shared/store/store.ts';
import { hcpIn, hcpJson, scratchFolder } from '../support/cli-world.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { World } from '../support/world.ts';

/** An event whose handler has failed as often as it may. */
async function park({ store, callerId }: World, sequence: number): Promise<string> {
  const sessionId = randomUUID();
  const payload = { event_type: 'log', sequence, data: { level: 'info', message: 'Hello' } };
  const row: Row = {
    ...{ caller_id: callerId, session_id: sessionId, sequence, kind: 'failed', parked_at: 1_700_000_000_000 },
    ...{ reason: 'The ledger was closed', body: JSON.stringify({ type: 'event', session_id: sessionId, payload }) },
  };
  await store.commit([{ insert: 'parked', row }]);
  return sessionId;
}

function handlerModule(source: string): string {
  const path = join(scratchFolder(), 'handler.mjs');
  writeFileSync(path, source);
  return path;
}

describeOnStacks('hcp parked', (stack) => {
  it('lists what a caller has put aside, and why', async () => {
    await using world = await World.create(stack());
    const sessionId = await park(world, 7);
    const { out } = await hcpIn(world, 'parked');
    expect(out[1]?.split(/ {2,}/)).toEqual([sessionId, '7', 'log', '2023-11-14 22:13:20', 'The ledger was closed']);
    const { value } = await hcpJson(world, 'parked list');
    expect(value).toMatchObject([{ session_id: sessionId, sequence: 7, event: { payload: { event_type: 'log' } } }]);
  });

  it('gives an event to a handler again; its effect and the end of the parking are one', async () => {
    await using world = await World.create(stack());
    const sessionId = await park(world, 7);
    const marker = randomUUID();
    const handler = handlerModule(`export async function onEvent(event, tx) {
      const row = { callee_id: '${marker}', capability: event.payload.data.message, slot: event.payload.sequence, session_id: 'x' };
      await tx.write([{ insert: 'slots', row }]);
    }`);
    const retried = await hcpIn(world, `parked retry ${sessionId} 7 --handler ${handler} --json`);
    const told = { session_id: sessionId, sequence: 7, outcome: 'processed' };
    expect(retried).toEqual({ code: 0, out: [JSON.stringify(told)], err: [] });
    expect(await world.store.get('slots', [marker, 'Hello', 7])).toBeDefined();
    expect(await hcpJson(world, 'parked')).toMatchObject({ value: [] });
    const again = await hcpIn(world, `parked retry ${sessionId} 7 --handler ${handler}`);
    expect(again).toMatchObject({ code: 5, out: [] });
  });

  it('keeps an event whose handler fails again', async () => {
    await using world = await World.create(stack());
    const sessionId = await park(world, 3);
    const handler = handlerModule(`export function onEvent() { throw new Error('Still closed'); }`);
    const { code, err } = await hcpIn(world, `parked retry ${sessionId} 3 --handler ${handler}`);
    expect({ code, err }).toEqual({ code: 1, err: ['hcp: Still closed'] });
    expect(await hcpJson(world, 'parked')).toMatchObject({ value: [{ sequence: 3 }] });
  });

  it('lets go of an event only when told so', async () => {
    await using world = await World.create(stack());
    const sessionId = await park(world, 3);
    const unclear = await hcpIn(world, `parked retry ${sessionId} 3`);
    expect(unclear).toMatchObject({ code: 2, err: ['hcp: parked retry needs --handler or --discard (hcp --help)'] });
    const discarded = await hcpIn(world, `parked retry ${sessionId} 3 --discard`);
    expect(discarded).toEqual({ code: 0, out: ['Event 3 was discarded'], err: [] });
    expect((await hcpIn(world, 'parked')).out).toEqual([`Caller ${world.callerId} has no parked event`]);
  });

  it('refuses a module that is none, or has no handler', async () => {
    await using world = await World.create(stack());
    const sessionId = await park(world, 3);
    const empty = handlerModule('export const other = 1;');
    const without = await hcpIn(world, `parked retry ${sessionId} 3 --handler ${empty}`);
    expect(without).toMatchObject({ code: 2, err: [`hcp: ${empty} exports no function onEvent (hcp --help)`] });
    const missing = await hcpIn(world, `parked retry ${sessionId} 3 --handler ./none.mjs`);
    expect(missing).toMatchObject({ code: 3, err: ['hcp: Cannot read ./none.mjs: it does not exist'] });
    expect((await hcpIn(world, `parked retry ${sessionId} three --discard`)).code).toBe(2);
  });
});
