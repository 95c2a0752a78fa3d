import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { TaskFailure } from '../../callee/index.ts';
import { hcpIn, hcpJson } from '../support/cli-world.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { World } from '../support/world.ts';

describeOnStacks('hcp sessions and hcp checkpoints', (stack) => {
  it('list the sessions of a callee, the newest first, with their states', async () => {
    await using world = await World.create(stack());
    await world.serve(async (task) => {
      if (task.inputs.fail) throw new TaskFailure('boom', 'It broke');
      return { outputs: {} };
    });
    const ids: string[] = [];
    for (const fail of [false, true]) {
      await world.submit({ inputs: { fail } });
      ids.unshift((await world.started()).sessionId);
      await world.hearOut();
    }
    const { code, out } = await hcpIn(world, 'sessions');
    expect(code).toBe(0);
    expect(out[0]).toMatch(/^SESSION +STATE +CAPABILITY +CALLER +RISK +STARTED/);
    expect(out.slice(1).map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      [ids[0], 'FAILED', 'test.task'],
      [ids[1], 'COMPLETED', 'test.task'],
    ]);
    const { value } = await hcpJson(world, 'sessions list --state failed');
    expect(value).toMatchObject([{ session_id: ids[0], state: 'FAILED', caller_id: world.callerId, risk_level: 'R1' }]);
    expect(await hcpJson(world, 'sessions list --limit 1')).toMatchObject({ value: [{ session_id: ids[0] }] });
    const other = await hcpIn(world, ['sessions', 'list', '--state', 'FAILD']);
    expect(other).toMatchObject({ code: 2, err: ['hcp: There is no state FAILD; did you mean FAILED? (hcp --help)'] });
  });

  verifies('HCP-014', 'show everything about a session in order of time, but not its token', async () => {
    await using world = await World.create(stack());
    await world.serve(async (_, run) => {
      await run.progress({ stage: 'digging', percent: 40, message: 'half a hole' });
      await run.checkpoint({ depth: 7 }, { description: 'deep enough' });
      return { outputs: { depth: 7 } };
    });
    await world.submit({ intent: 'Dig\u001b[2J a hole' });
    const { sessionId, token } = await world.started();
    await world.hearOut();
    const { code, out } = await hcpIn(world, `sessions show ${sessionId.toUpperCase()}`);
    expect(code).toBe(0);
    const text = out.join('\n');
    expect(text).toMatch(/^state +COMPLETED$/m);
    expect(text).toMatch(/^intent +Dig \[2J a hole$/m);
    expect(text).toMatch(/^ {2}PENDING +█+ \d/m);
    expect(text).toMatch(/^ {2}RUNNING +█+ \d/m);
    expect(text).toMatch(/^ {2}\d\d:\d\d:\d\d +3 {2}progress: 40 % digging, half a hole$/m);
    expect(text).toMatch(/ckpt-\S+ +4 .* resumable +deep enough$/m);
    expect(text).toMatch(/ decision +\{.*"result":"accepted"/);
    const { value } = await hcpJson(world, `sessions show ${sessionId}`);
    const { states, timeline, audit } = value as Record<string, { state: string; kind: string; sequence: number }[]>;
    expect(states?.map(({ state }) => state)).toEqual(['PENDING', 'RUNNING', 'COMPLETED']);
    expect(timeline?.map(({ kind }) => kind)).toEqual([
      ...['task_accepted', 'session_created', 'state_changed', 'progress', 'checkpoint_created'],
      ...['task_completed', 'state_changed', 'session_closed'],
    ]);
    expect(audit?.map(({ kind }) => kind)).toContain('ended');
    expect(text + JSON.stringify(value)).not.toContain(token);
  });

  it('show how long a rejected task waited', async () => {
    await using world = await World.create(stack());
    await world.serve(async () => ({ outputs: {} }));
    await world.submit({ capability: 'test.other' });
    await world.next();
    const [brief] = (await hcpJson(world, 'sessions')).value as { session_id: string }[];
    const { out } = await hcpIn(world, `sessions show ${brief?.session_id}`);
    expect(out.join('\n')).toMatch(/ {2}PENDING +█+ .*\n {2}REJECTED\n(?:.*\n)*.*rejected: capability_not_found/);
  });

  it('show the checkpoints of a session with their data', async () => {
    await using world = await World.create(stack());
    await world.serve(async (_, run) => {
      await run.checkpoint({ done: 1 }, { description: 'one' });
      await run.checkpoint({ done: 2 }, { description: 'two' });
      return { outputs: {} };
    });
    await world.submit();
    const { sessionId } = await world.started();
    await world.hearOut();
    const { value } = await hcpJson(world, `checkpoints ${sessionId}`);
    const twice = [
      { sequence: 4, description: 'two', resumable: true, data: { done: 2 } },
      { sequence: 3, description: 'one', resumable: true, data: { done: 1 } },
    ];
    expect(value).toMatchObject(twice);
    const { out } = await hcpIn(world, `checkpoints ${sessionId}`);
    expect(out.map((line) => line.split(/ {2,}/).at(-1))).toEqual(['two', 'one']);
  });

  it('tell of a damaged checkpoint, and end with 1', async () => {
    await using world = await World.create(stack());
    await world.serve(async (_, run) => {
      await run.checkpoint({ done: 1 }, { description: 'one' });
      return { outputs: {} };
    });
    await world.submit();
    const { sessionId } = await world.started();
    await world.hearOut();
    const [row] = await world.store.scan('checkpoints', 'key', { where: [sessionId] });
    const key = [sessionId, String(row?.checkpoint_id)];
    await world.store.commit([{ patch: 'checkpoints', key, set: { data: '{"done":9}' } }]);
    const { code, err } = await hcpIn(world, `checkpoints ${sessionId}`);
    expect({ code, err }).toEqual({ code: 1, err: [`hcp: Checkpoint ${key[1]} is damaged and will not be used`] });
  });

  it('know no session of another callee, nor one that is none', async () => {
    await using world = await World.create(stack());
    const unknown = randomUUID();
    for (const command of ['sessions show', 'checkpoints', 'export']) {
      const { code, err } = await hcpIn(world, `${command} ${unknown}`);
      expect({ code, err }).toEqual({ code: 5, err: [`hcp: Callee ${world.calleeId} has no session ${unknown}`] });
      expect((await hcpIn(world, `${command} nonsense`)).code).toBe(2);
    }
  });
});
