import { expect, it } from 'vitest';
import { openApprovalDesk } from '../../callee/index.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { counting, recorded, serveRisky, waitingOne } from '../support/approval-room.ts';
import { runHcp } from '../support/cli.ts';
import { hcpIn, hcpJson } from '../support/cli-world.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { World } from '../support/world.ts';

describeOnStacks('hcp approvals', (stack) => {
  it('lists what waits, and lets it be done', async () => {
    await using world = await World.create(stack());
    const { runs, executor } = counting();
    const callee = await serveRisky(world, {}, { executor });
    await world.submit({ intent: 'Heat it' });
    const { sessionId } = await waitingOne(callee.approvals);
    const { out } = await hcpIn(world, 'approvals');
    expect(out[1]?.split(/ {2,}/)).toMatchObject([
      sessionId,
      'test.task',
      world.callerId,
      'R3',
      '0 of 1',
      {},
      'Heat it',
    ]);
    const { value } = await hcpJson(world, 'approvals list');
    expect(value).toMatchObject([{ session_id: sessionId, status: 'pending', task: { intent: 'Heat it' } }]);
    const approved = await hcpIn(world, ['approvals', 'approve', sessionId, '--as', 'ada', '--comment', 'cooled down']);
    expect(approved).toEqual({ code: 0, out: ['Approved'], err: [] });
    await world.started();
    await world.hearOut();
    expect(runs).toEqual([sessionId]);
    const votes = await recorded(world, sessionId, 'approval');
    expect(votes.at(-1)).toMatchObject({ approver: 'ada', verdict: 'approve', comment: 'cooled down' });
    expect((await hcpIn(world, 'approvals')).out).toEqual(['Nothing waits for approval']);
  });

  it('denies, in the name of the user unless told otherwise', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    const nobody = await hcpIn(world, `approvals deny ${sessionId}`);
    expect(nobody).toMatchObject({ code: 2, err: ['hcp: --as must name who decides (hcp --help)'] });
    const denied = await hcpIn(world, `approvals deny ${sessionId} --json`, { env: { USER: 'grace' } });
    expect(denied).toEqual({ code: 0, out: [JSON.stringify({ session_id: sessionId, status: 'denied' })], err: [] });
    expect(await world.next()).toMatchObject({ type: 'task_rejected', payload: { reason_code: 'approval_denied' } });
    const votes = await recorded(world, sessionId, 'approval');
    expect(votes.at(-1)).toMatchObject({ approver: 'grace', verdict: 'deny' });
    const again = await hcpIn(world, `approvals approve ${sessionId} --as ada`);
    expect(again).toMatchObject({ code: 4, out: [] });
  });

  it('says when another person must agree', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    await world.submit({ inputs: { level: 'R5' } });
    const { sessionId } = await waitingOne(callee.approvals);
    const first = await hcpIn(world, `approvals approve ${sessionId} --as ada`);
    expect(first).toEqual({ code: 0, out: ['Another person must agree, too'], err: [] });
    const twice = await hcpIn(world, `approvals approve ${sessionId} --as ada --json`);
    expect(twice.code).toBe(4);
    expect(JSON.parse(twice.err.join())).toMatchObject({ error: { code: 'approval_not_open' } });
    expect((await hcpIn(world, `approvals approve ${sessionId} --as grace`)).out).toEqual(['Approved']);
  });

  it('has told the callee by the time it ends', async () => {
    await using world = await World.create(stack());
    const { store, calleeId } = world;
    const callee = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    const rung: unknown[] = [];
    const publish = async ({ route }: { readonly route: unknown }) => void rung.push(route);
    const transport = { publish } as unknown as Transport; // a desk does nothing else with it
    await openApprovalDesk({ store, calleeId, transport }).deny(sessionId, { approver: 'ada' });
    expect(rung).toHaveLength(1);
  });

  it('ends with 5 for a task that nobody has to decide about', async () => {
    await using world = await World.create(stack());
    const { code, err } = await hcpIn(world, `approvals approve ${crypto.randomUUID()} --as ada`);
    expect({ code, err }).toEqual({ code: 5, err: ['hcp: No such task waits for approval'] });
  });

  it('decides also where the callee cannot be told', async () => {
    await using world = await World.create(stack());
    const callee = await serveRisky(world);
    await world.submit();
    const { sessionId } = await waitingOne(callee.approvals);
    const where = ['--db', '/dev/null/none.db', '--store', world.stack.storeUrl, '--callee-id', world.calleeId];
    const { code, out, err } = await runHcp(['approvals', 'approve', sessionId, '--as', 'ada', ...where]);
    expect({ code, out }).toEqual({ code: 0, out: ['Approved'] });
    expect(err).toEqual(['hcp: The callee cannot be told: it will look by itself within seconds']);
  });
});
